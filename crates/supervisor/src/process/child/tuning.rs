//! How Highball has an application's Ruby work: the variables that tell its mold, and the interpreter.

use super::environment::{Environment, COMPILER};
use super::Errand;
use highball_cgroups::{available_memory, Cpus};
use highball_config::{Allocator, App, Jit};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The share of slots that Ruby wants to be free after a collection, and how the mold knows that Highball has chosen it.
/// With Ruby's default, 0.2, it soon collects completely, which ends much of what processes share
/// (lib/highball/heap_layout.rb).
const LEAST_FREE_SLOTS: [(&str, &str); 2] =
    [("RUBY_GC_HEAP_FREE_SLOTS_MIN_RATIO", "0.05"), ("HIGHBALL_LEAST_FREE_SLOTS", "chosen")];
/// How the names of variables begin by which a user chooses such shares.
const FREE_SLOTS: &[u8] = b"RUBY_GC_HEAP_FREE_SLOTS";

/// The share of the heap that is to be free, in per cent; `on`: the usual one; else why Ruby decides all, for the mold.
const COLLECTOR: &str = "HIGHBALL_COLLECTOR";
/// What a worker whose code Ruby has compiled needs at least, in bytes.
const BYTES_WITH_CODE: u64 = 128 << 20;
/// The memory of a worker from which on more of the heap is free: the examples need 15 to 20 MiB more then.
const BYTES_WITH_ROOM: u64 = 512 << 20;

/// `on`; `ahead`, if another process may also compile files during the boot; or why the boot cache is off, for the mold.
const BOOT_CACHE: &str = "HIGHBALL_COMPILED_FILES";
/// The CPUs that an application needs for that. With fewer, the boot would have to share what it may use.
const CPUS_TO_COMPILE_AHEAD: f64 = 2.0;

/// `jemalloc`, which is preloaded, or why not, for the mold.
const ALLOCATOR: &str = "HIGHBALL_ALLOCATOR";
/// The library, beside Highball's Ruby code.
const LIBRARY: &str = "highball_jemalloc.so";
const PRELOADED: &str = "LD_PRELOAD";

/// Tells a mold with this errand all that Highball tunes. `library` is the folder of Highball's Ruby code.
///
/// Returns options for the first Ruby that is started.
pub(super) fn tune(
    environment: &mut Environment,
    app: &App,
    library: &Path,
    errand: Errand,
) -> &'static [&'static str] {
    choose_allocator(environment, app, library);
    choose_collector(environment, app);
    choose_boot_cache(environment, app, errand, Cpus::of_process());
    share_for_long(environment, app);
    choose_compiler(environment, app)
}

/// Preloads jemalloc (`lib/highball/allocator.rb`). What a user has chosen outweighs `auto`.
fn choose_allocator(environment: &mut Environment, app: &App, library: &Path) {
    let off = match app.process.allocator {
        Allocator::System => Some("allocator = system".into()),
        Allocator::Jemalloc => None,
        Allocator::Auto => not_in_production(app).or_else(|| chosen_allocator(environment)),
    };
    let library = library.join(LIBRARY);
    let decision = off.or_else(|| why_not_preloaded(&library)).unwrap_or_else(|| {
        let before = environment.get(OsStr::new(PRELOADED)).cloned().unwrap_or_default();
        let libraries = [library.into(), before].into_iter().filter(|one: &OsString| !one.is_empty());
        let libraries = libraries.collect::<Vec<_>>().join(OsStr::new(" "));
        environment.insert(PRELOADED.into(), libraries);
        "jemalloc".into()
    });
    environment.insert(ALLOCATOR.into(), decision.into());
}

/// Why the environment decides about the allocator, if so (malloc(3), mallopt(3)).
fn chosen_allocator(environment: &Environment) -> Option<String> {
    let chooses = |(name, value): (&OsString, &OsString)| {
        let name = name.to_str()?;
        let is_about_malloc = match name {
            PRELOADED => !value.is_empty(),
            "GLIBC_TUNABLES" => value.to_string_lossy().contains("malloc"),
            _ => name.starts_with("MALLOC_"),
        };
        is_about_malloc.then(|| format!("{name} is set"))
    };
    environment.iter().find_map(chooses)
}

/// The dynamic linker would print an error, and go on without it.
#[allow(clippy::disallowed_methods)] // Highball's own file
fn why_not_preloaded(library: &Path) -> Option<String> {
    if library.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'$')) {
        return Some("the path of Highball's library has a character that LD_PRELOAD cannot have".into());
    }
    (!library.is_file()).then(|| "this Highball was built without jemalloc".into())
}

/// Lets a mold in production share its memory for longer, if it has some to share. What a user has chosen outweighs it.
fn share_for_long(environment: &mut Environment, app: &App) {
    let is_chosen = environment.keys().any(|name| name.as_encoded_bytes().starts_with(FREE_SLOTS));
    if app.environment == "production" && app.process.preload && !is_chosen {
        environment.extend(LEAST_FREE_SLOTS.map(|(name, value)| (name.into(), value.into())));
    }
}

/// Tells a mold whether Ruby is to compile what runs often (`lib/highball/compiler.rb`). What a user has chosen outweighs it.
///
/// Returns options for the Ruby that finds out whether it has to be started with the compiler.
fn choose_compiler(environment: &mut Environment, app: &App) -> &'static [&'static str] {
    let options = environment.get(OsStr::new("RUBYOPT")).map(|options| options.to_string_lossy());
    let has_options = options.is_some();
    let is_chosen = environment.contains_key(OsStr::new("RUBY_YJIT_ENABLE"))
        || options.is_some_and(|options| options.contains("jit"));
    if is_chosen {
        return &[];
    }
    let off = match app.process.jit {
        Jit::Off => Some("jit = off".into()),
        Jit::On => None,
        Jit::Auto => not_in_production(app).or_else(|| no_room_for_code(app)),
    };
    // What RUBYOPT has Ruby load may need RubyGems.
    let (decision, options): (String, &[&str]) = match off {
        Some(why) => (why, &[]),
        None if has_options => ("on".into(), &[]),
        None => ("again".into(), &["--disable-gems"]),
    };
    environment.insert(COMPILER.into(), decision.into());
    options
}

/// Tells a mold how Ruby's garbage collector is to work (`lib/highball/collector.rb`). What a user has chosen outweighs it.
fn choose_collector(environment: &mut Environment, app: &App) {
    let is_chosen = |name: &&OsString| name.as_encoded_bytes().starts_with(b"RUBY_GC_");
    let off = match app.process.gc {
        false => Some("gc = off".into()),
        true => not_in_production(app).or_else(|| {
            environment.keys().find(is_chosen).map(|name| format!("{} is set", name.to_string_lossy()))
        }),
    };
    let has_room = memory_of_worker(app).is_some_and(|bytes| bytes >= BYTES_WITH_ROOM);
    let decision = off.unwrap_or_else(|| if has_room { "45" } else { "on" }.into());
    environment.insert(COLLECTOR.into(), decision.into());
}

/// Tells a mold whether to keep what Ruby has compiled (`lib/highball/boot_cache.rb`), and whether another process may
/// compile ahead of it. `cpus` are those of Highball.
fn choose_boot_cache(environment: &mut Environment, app: &App, errand: Errand, cpus: Cpus) {
    let off = match app.process.boot_cache {
        false => Some("boot_cache = off".into()),
        true => not_in_production(app),
    };
    // Workers that serve meanwhile, and workers that each load the application, need the other CPUs.
    let has_free_cpu = errand == Errand::Serve
        && app.process.preload
        && cpus.at_most(app.cpu_max).count >= CPUS_TO_COMPILE_AHEAD;
    let decision = off.unwrap_or_else(|| if has_free_cpu { "ahead" } else { "on" }.into());
    environment.insert(BOOT_CACHE.into(), decision.into());
}

/// Why Ruby is not tuned by default, if the application is not in production.
fn not_in_production(app: &App) -> Option<String> {
    (app.environment != "production").then(|| format!("the environment is {}", app.environment))
}

/// Why Ruby's compiler is off with `jit = auto`: there is too little memory for what it makes. `None`: there is enough.
fn no_room_for_code(app: &App) -> Option<String> {
    let of_worker = memory_of_worker(app)?;
    (of_worker < BYTES_WITH_CODE).then(|| {
        format!(
            "a worker may have {} MiB of memory, and with compiled code it needs {}",
            of_worker >> 20,
            BYTES_WITH_CODE >> 20
        )
    })
}

/// The memory that a worker may have, in bytes; `None`: the kernel does not report how much there is.
fn memory_of_worker(app: &App) -> Option<u64> {
    let available = available_memory()?;
    let of_app = app.memory.budget(available).unwrap_or(available);
    let limit = app.memory.worker.bytes(available).unwrap_or(u64::MAX);
    Some((of_app / u64::from(app.workers.max(1))).min(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_cgroups::{CpuLimit, CpuMax};
    use highball_config::MemoryBound;

    fn app() -> App {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["highball".into(), "serve".into(), folder.path().as_os_str().to_owned()];
        let parsed = highball_config::parse(arguments, &|_| None).unwrap();
        let highball_config::Invocation::Serve(settings) = parsed else {
            unreachable!("it was asked to serve")
        };
        App { environment: "production".into(), ..App::clone(&settings.apps[0]) }
    }

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// The value of this variable, which is taken out.
    fn taken(environment: &mut Environment, name: &str) -> Option<String> {
        environment.remove(OsStr::new(name)).map(|value| value.into_string().unwrap())
    }

    #[test]
    fn jemalloc_is_preloaded_in_production_unless_the_user_has_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join(LIBRARY);
        let chosen = |app: &App, variables: &[(&str, &str)]| {
            let mut environment = environment(variables);
            choose_allocator(&mut environment, app, folder.path());
            (taken(&mut environment, ALLOCATOR).unwrap(), taken(&mut environment, PRELOADED))
        };
        let off = |why: &str| (why.to_owned(), None);
        let mut app = app();
        assert_eq!(chosen(&app, &[]), off("this Highball was built without jemalloc"));
        std::fs::write(&library, "").unwrap();
        let path = library.to_str().unwrap();
        let preloaded = |libraries: &str| ("jemalloc".to_owned(), Some(libraries.to_owned()));
        assert_eq!(chosen(&app, &[]), preloaded(path));
        assert_eq!(chosen(&app, &[("LD_PRELOAD", "")]), preloaded(path));
        assert_eq!(chosen(&app, &[("MALLOC_ARENA_MAX", "2")]), off("MALLOC_ARENA_MAX is set"));
        assert_eq!(
            chosen(&app, &[("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")]),
            off("GLIBC_TUNABLES is set")
        );
        assert_eq!(chosen(&app, &[("GLIBC_TUNABLES", "glibc.rtld.nns=1")]), preloaded(path));
        let theirs = chosen(&app, &[("LD_PRELOAD", "x.so")]);
        assert_eq!(theirs, ("LD_PRELOAD is set".into(), Some("x.so".into())));
        app.process.allocator = Allocator::Jemalloc;
        assert_eq!(chosen(&app, &[("LD_PRELOAD", "x.so")]), preloaded(&format!("{path} x.so")));
        app.process.allocator = Allocator::System;
        assert_eq!(chosen(&app, &[]), off("allocator = system"));
        app.process.allocator = Allocator::Auto;
        app.environment = "staging".into();
        assert_eq!(chosen(&app, &[]), off("the environment is staging"));
    }

    #[test]
    fn a_path_that_the_linker_would_cut_is_not_preloaded() {
        for folder in ["a b", "a:b", "a$LIB"] {
            let outer = tempfile::tempdir().unwrap();
            let folder = outer.path().join(folder);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(LIBRARY), "").unwrap();
            assert!(why_not_preloaded(&folder.join(LIBRARY)).is_some(), "{folder:?}");
        }
    }

    #[test]
    fn a_mold_in_production_shares_for_long_unless_a_user_has_chosen_otherwise() {
        let name = OsStr::new("RUBY_GC_HEAP_FREE_SLOTS_MIN_RATIO");
        let least_of = |app: &App, variables: &[(&str, &str)]| {
            let mut environment = environment(variables);
            share_for_long(&mut environment, app);
            environment.get(name).cloned()
        };
        let mut app = App { environment: "production".into(), ..app() };
        let least = |variables: &[(&str, &str)]| least_of(&app, variables);
        assert_eq!(least(&[]), Some("0.05".into()));
        assert_eq!(least(&[("RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO", "0.5")]), None);
        assert_eq!(least(&[("RUBY_GC_HEAP_FREE_SLOTS_MIN_RATIO", "0.3")]), Some("0.3".into()));
        app.environment = "development".into();
        assert_eq!(least_of(&app, &[]), None);
        app.environment = "production".into();
        app.process.preload = false;
        assert_eq!(least_of(&app, &[]), None, "each worker loads the application itself");
    }

    #[test]
    fn the_compiler_is_chosen_for_production_unless_the_user_has_chosen() {
        let chosen = |app: &App, variables: &[(&str, &str)]| {
            let mut environment = environment(variables);
            let options = choose_compiler(&mut environment, app);
            (
                environment.remove(OsStr::new(COMPILER)).map(|decision| decision.into_string().unwrap()),
                options.len(),
            )
        };
        let decided = |words: &str| Some(words.to_owned());
        let mut app = App { environment: "production".into(), ..app() };
        assert_eq!(chosen(&app, &[]), (decided("again"), 1));
        assert_eq!(chosen(&app, &[("RUBYOPT", "-rbundler/setup")]), (decided("on"), 0), "it needs RubyGems");
        assert_eq!(chosen(&app, &[("RUBYOPT", "--yjit")]), (None, 0));
        assert_eq!(chosen(&app, &[("RUBY_YJIT_ENABLE", "0")]), (None, 0));
        app.environment = "staging".into();
        assert_eq!(chosen(&app, &[]), (decided("the environment is staging"), 0));
        app.process.jit = Jit::On;
        assert_eq!(chosen(&app, &[]), (decided("again"), 1));
        app.process.jit = Jit::Off;
        assert_eq!(chosen(&app, &[]), (decided("jit = off"), 0));
    }

    #[test]
    fn the_collector_is_tuned_in_production_unless_the_user_has_chosen() {
        let decided = |app: &App, variables: &[(&str, &str)]| {
            let mut environment = environment(variables);
            choose_collector(&mut environment, app);
            environment.remove(OsStr::new(COLLECTOR)).unwrap().into_string().unwrap()
        };
        let mut app = App { environment: "production".into(), workers: 1, ..app() };
        app.memory.worker = MemoryBound::Bytes(600 << 20);
        assert_eq!(decided(&app, &[]), "45");
        app.memory.worker = MemoryBound::Bytes(400 << 20);
        assert_eq!(decided(&app, &[]), "on");
        assert_eq!(decided(&app, &[("RUBY_GC_MALLOC_LIMIT", "1")]), "RUBY_GC_MALLOC_LIMIT is set");
        app.environment = "development".into();
        assert_eq!(decided(&app, &[]), "the environment is development");
        app.process.gc = false;
        assert_eq!(decided(&app, &[]), "gc = off");
    }

    #[test]
    fn compiled_files_are_kept_in_production_and_compiled_ahead_by_a_free_cpu() {
        let decided = |app: &App, errand: Errand, count: f64| {
            let mut environment = environment(&[]);
            choose_boot_cache(&mut environment, app, errand, Cpus { count, by: CpuLimit::CpuMax });
            environment.remove(OsStr::new(BOOT_CACHE)).unwrap().into_string().unwrap()
        };
        let mut app = App { environment: "production".into(), ..app() };
        assert_eq!(decided(&app, Errand::Serve, 2.0), "ahead");
        assert_eq!(decided(&app, Errand::Serve, 1.5), "on");
        assert_eq!(decided(&app, Errand::ServeNext, 2.0), "on", "workers serve meanwhile");
        assert_eq!(decided(&app, Errand::Examine, 2.0), "on", "a server may run beside it");
        app.cpu_max = Some(CpuMax(100));
        assert_eq!(decided(&app, Errand::Serve, 8.0), "on");
        app.cpu_max = None;
        app.process.preload = false;
        assert_eq!(decided(&app, Errand::Serve, 8.0), "on", "each worker loads the application");
        app.environment = "test".into();
        assert_eq!(decided(&app, Errand::Serve, 2.0), "the environment is test");
        app.process.boot_cache = false;
        assert_eq!(decided(&app, Errand::Serve, 2.0), "boot_cache = off");
    }
}
