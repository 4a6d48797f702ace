# What people and CI do with this tree. `just` lists it; every recipe is a command that works without just.

_list:
    @just --list

# Install what is missing and build the server and its extension
setup:
    bin/setup

# Type-check everything
check:
    cargo check --workspace --all-targets

# Format Rust and Ruby
fmt:
    cargo fmt --all
    cargo fmt --manifest-path fuzz/Cargo.toml
    rubocop --autocorrect --fail-level error

# Everything that reads the sources and runs nothing
lint:
    bin/test linters format clippy rubocop

# All tests; `just test --quick` leaves out what takes long, `just test --full` nothing
test *OPTIONS:
    bin/test {{OPTIONS}}

# End-to-end tests alone
e2e:
    bin/test build e2e

# Restart and the like under load, many times: `just soak --app small --times 10`
soak *OPTIONS:
    bin/setup
    ruby test/soak/soak.rb {{OPTIONS}}

# Throw bytes at what reads those of others (needs cargo-fuzz and the nightly compiler): `just fuzz request_head 300`
fuzz TARGET SECONDS:
    cargo +nightly fuzz run {{TARGET}} -- -max_total_time={{SECONDS}} -dict=fuzz/http.dict

# What `just bench hello` asks: a worker with a thread, and what its ratios to Puma and to the floor are
hello := "schemes --only highball,puma,floor --workload hello --connections 1,25,100 --workers 1 --rounds 5 --seconds 4"

# Measure what is built from this tree: `just bench hello`, `just bench schemes --install`
bench SCENARIO *OPTIONS:
    bin/setup
    target/release/highball bench {{ if SCENARIO == "hello" { hello } else { SCENARIO } }} {{OPTIONS}}

# Measure hello and all schemes, and write bench/RESULTS.md and docs/images (an hour on a quiet machine)
results:
    just bench hello --output target/results/hello
    just bench schemes --install --output target/results/schemes
    target/release/highball bench report target/results/{hello,schemes}/results.json > bench/RESULTS.md
    ruby bench/screenshots.rb target/results/schemes/report.html docs/images

# Rewrite what is generated from sources
docs:
    HIGHBALL_BLESS=1 cargo test -p highball-config --test manual
