# Short names for the commands of this tree, for people and CI. `just` lists them; each is a command that works without just.

_list:
    @just --list

# Install missing packages, build the server and its extension
setup:
    bin/setup

# Type-check everything
check:
    cargo check --workspace --all-targets
    cargo check --workspace --all-targets --config Cargo.toml --manifest-path bench/Cargo.toml --target-dir target

# Format Rust and Ruby
fmt:
    cargo fmt --all
    cargo fmt --manifest-path bench/Cargo.toml --all
    cargo fmt --manifest-path fuzz/Cargo.toml
    rubocop --autocorrect --fail-level error

# Check the sources without running anything
lint:
    bin/test linters format clippy rubocop

# All tests; `just test --quick` leaves out long ones, `just test --full` adds very long ones
test *OPTIONS:
    bin/test {{OPTIONS}}

# End-to-end tests alone
e2e:
    bin/test build e2e

# Restarts, reforks and hot restarts under load, many times: `just soak --app small --times 10`
soak *OPTIONS:
    bin/setup
    ruby test/soak/soak.rb {{OPTIONS}}

# Fuzz a parser (needs cargo-fuzz and the nightly compiler): `just fuzz request_head 300`
fuzz TARGET SECONDS:
    ruby fuzz/seeds.rb {{TARGET}}
    cargo +nightly fuzz run {{TARGET}} -- -max_total_time={{SECONDS}} -dict=fuzz/http.dict

# The scenario of `just bench hello`: a worker with one thread, compared with Puma and the floor
hello := "schemes --only highball,puma,floor --workload hello --connections 1,25,100 --workers 1 --rounds 5 --seconds 4"

# That of `just bench tls`: the same over TLS and HTTP/2, with nginx
tls := "schemes --only highball-tls,highball-http2,puma-nginx-tls,puma-nginx-http2,floor-nginx-tls --workload hello --connections 25 --workers 1 --rounds 5 --seconds 4"

# Build the gems, and their checksums, in pkg/
gems:
    rake gem

# Run a benchmark with the binary of this tree: `just bench hello`, `just bench schemes --install`
bench SCENARIO *OPTIONS:
    bin/setup --bench
    target/release/highball bench {{ if SCENARIO == "hello" { hello } else if SCENARIO == "tls" { tls } else { SCENARIO } }} {{OPTIONS}}

# Measure hello and all schemes, and write bench/RESULTS.md and docs/images (an hour on a quiet machine)
results:
    just bench hello --output target/results/hello
    just bench schemes --install --output target/results/schemes
    target/release/highball bench report target/results/{hello,schemes}/results.json > bench/RESULTS.md
    ruby bench/screenshots.rb target/results/schemes/report.html docs/images

# Build the site from docs/ into target/site (MkDocs and Material: the Debian package mkdocs-material)
site:
    mkdocs build --quiet --strict --config-file site/mkdocs.yml

# Rewrite the generated documentation
docs:
    HIGHBALL_BLESS=1 cargo test --quiet --profile testing -p highball-config --test manual -- --nocapture
