//! The program, from outside.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

#[path = "../shared/answers.rs"]
mod answers;
mod deletes;
mod explore;
mod export;
mod faults;
mod gate;
mod govern;
mod growth;
mod input;
mod leftovers;
mod loop_mount;
mod old_files;
mod outcomes;
mod output;
mod pages;
mod process;
mod readme;
mod regions;
mod report;
mod reproduce;
mod rm;
mod run;
mod serve;
mod sim_run;
mod swarm;
#[path = "../shared/system.rs"]
mod system;
mod top;
mod topology;
mod trace;
mod trim;
mod verdicts;
