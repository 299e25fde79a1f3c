use forebay_config::Source;
use forebay_load::job_file::JobFile;

const JOBS: &str = "\
- name: reads
  shards: all
  type: randread
  shard_info: { parallelism: 4, reqsize: 4kB, shares: 1000 }
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = JobFile::parse(&Source::new("jobs.yaml", JOBS), None, 2)?;
    println!("{} jobs", file.jobs.len());
    Ok(())
}
