# Short names for what CONTRIBUTING.md says in full. Optional: .ci/run needs none of it.

# all recipes
default:
    @just --list

# what to run before each commit: under a minute where little has changed
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test -p forebay-core --lib
    cargo test -p tidy

# the tests of one crate, or those of them whose name holds FILTER
test CRATE *FILTER:
    cargo test -p {{CRATE}} {{FILTER}}

# the random scenario of one seed
seed N:
    cargo run -p forebay-cli -- sim swarm 1 --seed {{N}}

# the reports of the experiments, recorded anew
snapshots:
    UPDATE_SNAPSHOTS=1 cargo test -p forebay-experiments reports_are_as_recorded
    git diff --stat

# instructions per thousand requests, which repeat exactly, and times, which do not
bench:
    cargo bench --manifest-path benches/Cargo.toml --bench instructions
    cargo bench --manifest-path benches/Cargo.toml --bench time

# all that a change must pass
ci:
    .ci/run
