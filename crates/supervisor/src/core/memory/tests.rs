use super::*;

const GIB: u64 = 1 << 30;

/// Applications with workers that grow as a test says.
struct Scene {
    watch: MemoryWatch,
    apps: Vec<(MemoryLimits, Vec<u64>)>,
    now: Instant,
    available: u64,
    replacing_for: Option<Duration>,
    has_replaced: bool,
}

fn limits(worker: MemoryBound, app: MemoryBound) -> MemoryLimits {
    MemoryLimits { worker, app, max: None }
}

impl Scene {
    fn of(available: u64, apps: &[(MemoryLimits, &[u64])]) -> Scene {
        let apps = apps.iter().map(|(limits, workers)| (*limits, workers.to_vec())).collect();
        Scene {
            watch: MemoryWatch::default(),
            apps,
            now: Instant::now(),
            available,
            replacing_for: None,
            has_replaced: false,
        }
    }

    /// Looks once, or as often as the watch asks for at once.
    fn look(&mut self) -> (Vec<Verdict>, Duration) {
        for _ in 0..3 {
            let apps: Vec<Watched> = self
                .apps
                .iter()
                .enumerate()
                .map(|(app, (limits, workers))| {
                    let app = AppId(app as u32);
                    let readings = workers.iter().enumerate().map(|(worker, mib)| {
                        let process = Process::Worker(worker as u32);
                        let exact = self.watch.asks_exactly(app, process, self.now).then_some(mib * MIB);
                        // What workers share with the mold makes the quick number larger.
                        Reading {
                            process,
                            is_serving: true,
                            is_stopped: false,
                            limit: MemoryBound::None,
                            at_most: (mib + 50) * MIB,
                            exact,
                        }
                    });
                    let (limits, replacing_for, has_replaced) =
                        (*limits, self.replacing_for, self.has_replaced);
                    Watched { app, limits, replacing_for, has_replaced, readings: readings.collect() }
                })
                .collect();
            let (verdicts, next) = self.watch.look(&apps, (Some(self.available * MIB), 10 * MIB), self.now);
            if next > Duration::ZERO {
                return (verdicts, next);
            }
        }
        panic!("it asks for exact numbers again and again");
    }

    fn after(&mut self, seconds: u64, app: usize, workers: &[u64]) -> (Vec<Verdict>, Duration) {
        self.now += Duration::from_secs(seconds);
        self.apps[app].1 = workers.to_vec();
        self.look()
    }
}

fn replaced(verdicts: &[Verdict]) -> Option<(u32, u32, Bound, bool)> {
    match verdicts {
        [] => None,
        [Verdict::Replace(AppId(app), worker, over)] => Some((*app, *worker, over.bound, over.has_room)),
        other => panic!("{other:?}"),
    }
}

const SHARED: MemoryLimits = MemoryLimits { worker: MemoryBound::None, app: MemoryBound::Auto, max: None };

#[test]
fn nothing_is_replaced_within_the_limits() {
    let mut scene = Scene::of(8192, &[(SHARED, &[100, 120]), (SHARED, &[80])]);
    let (verdicts, next) = scene.look();
    assert_eq!((verdicts, next), (Vec::new(), LONGEST), "and a look once in a while is enough");
}

#[test]
fn a_worker_over_its_limit_is_replaced_with_another_first_if_there_is_room() {
    let limit = limits(MemoryBound::Bytes(200 * MIB), MemoryBound::None);
    let mut scene = Scene::of(8192, &[(limit, &[100, 100])]);
    assert_eq!(scene.look().0, []);
    assert_eq!(replaced(&scene.after(5, 0, &[100, 199]).0), None, "not before");
    assert_eq!(replaced(&scene.after(5, 0, &[100, 201]).0), Some((0, 1, Bound::Worker, true)));
    scene.replacing_for = Some(Duration::from_secs(1));
    assert_eq!(replaced(&scene.after(1, 0, &[300, 201]).0), None, "one at a time");
    scene.replacing_for = None;
    scene.available = 550;
    assert_eq!(replaced(&scene.after(1, 0, &[300, 90]).0), Some((0, 0, Bound::Worker, false)), "no room");
}

#[test]
fn what_workers_share_does_not_count() {
    let limit = limits(MemoryBound::Bytes(130 * MIB), MemoryBound::None);
    let mut scene = Scene::of(8192, &[(limit, &[100, 100])]); // the quick number is 150
    assert_eq!(scene.look().0, []);
    assert_eq!(replaced(&scene.after(60, 0, &[120, 120]).0), None);
}

#[test]
fn a_limit_that_a_new_worker_exceeds_is_called_too_small() {
    let limit = limits(MemoryBound::Bytes(64 * MIB), MemoryBound::None);
    let mut scene = Scene::of(8192, &[(limit, &[100])]);
    assert_eq!(
        replaced(&scene.look().0).map(|it| it.1),
        Some(0),
        "it may have served before it was looked at"
    );
    scene.has_replaced = true;
    let (verdicts, next) = scene.after(5, 0, &[100]);
    assert!(
        matches!(verdicts[..], [Verdict::TooSmall(AppId(0), over)] if over.bytes == 100 * MIB),
        "{verdicts:?}"
    );
    assert_eq!(next, EXCEEDED, "and is not looked at all the time");
}

#[test]
fn a_share_is_one_of_the_machine() {
    assert_eq!(MemoryBound::Share(25).bytes(4 * GIB), Some(4 * GIB / 100 * 25));
    let limit = limits(MemoryBound::Share(10), MemoryBound::None);
    let mut scene = Scene::of(1000, &[(limit, &[50])]);
    scene.look();
    assert_eq!(replaced(&scene.after(5, 0, &[99]).0), None);
    assert_eq!(replaced(&scene.after(5, 0, &[101]).0).map(|it| it.1), Some(0));
}

#[test]
fn one_that_has_grown_before_the_first_look_is_replaced() {
    let limit = limits(MemoryBound::Bytes(64 * MIB), MemoryBound::None);
    let mut scene = Scene::of(8192, &[(limit, &[100])]);
    assert_eq!(replaced(&scene.look().0).map(|it| it.1), Some(0));
    scene.has_replaced = true;
    scene.apps[0].1 = vec![100, 10]; // the second one takes its place
    scene.look();
    assert_eq!(replaced(&scene.after(5, 0, &[9, 70]).0).map(|it| it.1), Some(1));
}

#[test]
fn over_the_budget_the_worker_goes_that_has_grown_the_most() {
    let budget = limits(MemoryBound::None, MemoryBound::Bytes(400 * MIB));
    let mut scene = Scene::of(8192, &[(budget, &[50, 50, 50])]);
    scene.look();
    let (verdicts, _) = scene.after(5, 0, &[120, 160, 130]);
    assert_eq!(replaced(&verdicts), Some((0, 1, Bound::App, false)));
}

#[test]
fn below_what_the_kernel_allows_a_worker_is_replaced() {
    let max = MemoryLimits { worker: MemoryBound::None, app: MemoryBound::Auto, max: Some(400 * MIB) };
    let mut scene = Scene::of(8192, &[(max, &[50, 50]), (SHARED, &[900])]);
    scene.look();
    assert_eq!(replaced(&scene.after(5, 0, &[150, 180]).0), None, "85% of 400 MiB are 340 MiB");
    assert_eq!(replaced(&scene.after(5, 0, &[160, 190]).0), Some((0, 1, Bound::Max, false)));
    let smaller = MemoryLimits { app: MemoryBound::Bytes(200 * MIB), ..max };
    let mut scene = Scene::of(8192, &[(smaller, &[50, 50])]);
    scene.look();
    assert_eq!(replaced(&scene.after(5, 0, &[90, 120]).0).map(|it| it.2), Some(Bound::App));
}

#[test]
fn a_leak_does_not_cost_others_their_workers() {
    let mut scene = Scene::of(1000, &[(SHARED, &[50, 50]), (SHARED, &[300, 300])]);
    scene.look();
    scene.now += Duration::from_secs(600);
    scene.apps[1].1 = vec![330, 330]; // has grown for a long time
    scene.look();
    scene.now += Duration::from_secs(60);
    scene.look();
    let (verdicts, _) = scene.after(60, 0, &[90, 120]);
    assert_eq!(replaced(&verdicts), Some((0, 1, Bound::Machine, false)), "although the other has much more");
}

#[test]
fn a_budget_of_its_own_keeps_an_application_from_paying_for_others() {
    let own = limits(MemoryBound::None, MemoryBound::Bytes(900 * MIB));
    let mut scene = Scene::of(1000, &[(own, &[100]), (SHARED, &[100])]);
    scene.look();
    assert_eq!(replaced(&scene.after(5, 0, &[800]).0), None);
    let (verdicts, _) = scene.after(5, 1, &[110]);
    assert_eq!(replaced(&verdicts), Some((1, 0, Bound::Machine, false)));
}

#[test]
fn where_none_has_grown_no_one_is_replaced() {
    let mut scene = Scene::of(1000, &[(SHARED, &[400, 400]), (SHARED, &[100])]);
    let (verdicts, _) = scene.look();
    assert!(matches!(verdicts[..], [Verdict::TooSmall(AppId(0), _)]), "{verdicts:?}");
}

#[test]
fn no_budget_no_replacement() {
    let none = limits(MemoryBound::None, MemoryBound::None);
    let mut scene = Scene::of(1000, &[(none, &[100])]);
    scene.look();
    let (verdicts, next) = scene.after(5, 0, &[5000]);
    assert_eq!((verdicts, next), (Vec::new(), LONGEST));
}

#[test]
fn looks_come_closer_as_a_limit_does() {
    let limit = limits(MemoryBound::Bytes(4000 * MIB), MemoryBound::None);
    let mut scene = Scene::of(8192, &[(limit, &[100])]);
    let far = scene.look().1;
    let near = scene.after(600, 0, &[3800]).1;
    let fast = scene.after(1, 0, &[3900]).1;
    let last = scene.after(1, 0, &[3999]).1;
    assert_eq!(far, LONGEST);
    assert!(near < Duration::from_secs(1) && fast < near && last == SHORTEST, "{near:?} {fast:?} {last:?}");
}

/// However the leak goes, it is noticed before the rest of the memory is gone, which is 15 % of 512 MiB here.
#[test]
fn a_leak_is_noticed_in_time() {
    for rate_mib in [1, 20, 60, 200] {
        let mut scene = Scene::of(512, &[(SHARED, &[40, 40])]);
        let mut next = scene.look().1;
        let mut grown = 0.0;
        let verdict = loop {
            scene.now += next;
            grown += next.as_secs_f64() * f64::from(rate_mib);
            scene.apps[0].1[0] = 40 + grown as u64;
            let (verdicts, after) = scene.look();
            next = after;
            if let Some(verdict) = verdicts.first() {
                break format!("{verdict:?}");
            }
        };
        let total = 90.0 + grown;
        assert!(total < 512.0, "{rate_mib} MiB a second: {total} MiB when noticed, {verdict}");
    }
}

/// Of two applications that have too much, one may just have been looked at exactly.
#[test]
fn exact_numbers_are_not_asked_for_in_turn() {
    let limit = limits(MemoryBound::Bytes(60 * MIB), MemoryBound::None);
    let mut scene = Scene::of(8192, &[(limit, &[50]), (limit, &[50])]);
    scene.look();
    scene.after(20, 1, &[70]);
    scene.apps[0].1 = vec![70];
    let (verdicts, _) = scene.after(10, 1, &[70]);
    assert_eq!(verdicts.len(), 2);
}

#[test]
fn there_is_room_for_workers_like_the_others_and_one_for_a_replacement() {
    // 85 % of 1000 MiB are 850, less 10 for the server.
    let mut scene = Scene::of(1000, &[(SHARED, &[100, 140]), (SHARED, &[100])]);
    let room = |scene: &Scene, app: u32, wanted: [usize; 2]| {
        let wanted = [(AppId(0), wanted[0]), (AppId(1), wanted[1])];
        let limits = scene.apps[app as usize].0;
        let room = scene.watch.room(AppId(app), limits, machine(scene.available, None), &wanted);
        room.map(|room| (room.workers, room.worker_bytes / MIB, room.free_bytes / MIB))
    };
    assert_eq!(room(&scene, 0, [2, 1]), None, "nothing was measured yet");
    scene.look();
    assert_eq!(
        room(&scene, 0, [2, 1]),
        Some((2, 140, 500)),
        "new ones may take as much as the largest at first"
    );
    assert_eq!(room(&scene, 1, [2, 1]), Some((4, 100, 500)));
    assert_eq!(room(&scene, 0, [2, 4]), Some((0, 140, 200)), "what others want is promised");
    assert_eq!(room(&scene, 0, [4, 1]), Some((0, 140, 220)), "and what it wants itself");
    assert_eq!(room(&scene, 0, [20, 20]), Some((0, 140, 0)));
    scene.after(5, 0, &[300, 320]);
    assert_eq!(room(&scene, 0, [2, 1]).map(|(workers, ..)| workers), Some(0), "they have grown");
}

/// In MiB.
fn machine(available: u64, free: Option<u64>) -> MachineNow {
    MachineNow { available: Some(available * MIB), free: free.map(|free| free * MIB) }
}

#[test]
fn what_other_programs_have_bounds_the_room() {
    let mut scene = Scene::of(1000, &[(SHARED, &[100, 140])]);
    scene.look();
    let free = |free: Option<u64>, wanted: usize| {
        let free = scene.watch.free(AppId(0), SHARED, machine(1000, free), &[(AppId(0), wanted)]);
        free.map(|bytes| bytes / MIB)
    };
    assert_eq!(free(None, 2), Some(600));
    assert_eq!(free(Some(700), 2), Some(600));
    assert_eq!(free(Some(300), 2), Some(300));
    assert_eq!(free(Some(300), 3), Some(160), "what is wanted comes from there, too");
    let room = |free| scene.watch.room(AppId(0), SHARED, machine(1000, Some(free)), &[(AppId(0), 2)]);
    assert_eq!(room(300).map(|room| room.workers), Some(1));
    assert_eq!(room(100).map(|room| room.workers), Some(0));
}

#[test]
fn a_budget_of_its_own_bounds_the_room() {
    let budget = limits(MemoryBound::None, MemoryBound::Bytes(400 * MIB));
    let mut scene = Scene::of(100_000, &[(budget, &[100])]);
    scene.look();
    let machine = machine(100_000, None);
    let room = |wanted: usize| scene.watch.room(AppId(0), budget, machine, &[(AppId(0), wanted)]);
    assert_eq!(room(1).map(|room| room.workers), Some(2));
    assert_eq!(room(3).map(|room| room.workers), Some(0));
}

#[test]
fn a_companion_over_its_limit_is_ended_and_looked_at_more_often_before() {
    let (app, process) = (AppId(0), Process::Companion(7));
    let (mut watch, now) = (MemoryWatch::default(), Instant::now());
    let mut look = |seconds, mib: u64, limit| {
        let reading = Reading {
            process,
            is_serving: false,
            is_stopped: false,
            limit,
            at_most: mib * MIB,
            exact: Some(mib * MIB),
        };
        let (limits, replacing_for, has_replaced) = (SHARED, None, false);
        let watched = Watched { app, limits, replacing_for, has_replaced, readings: vec![reading] };
        watch.look(&[watched], (Some(8192 * MIB), 10 * MIB), now + Duration::from_secs(seconds))
    };
    let limit = MemoryBound::Bytes(200 * MIB);
    let (verdicts, next) = look(0, 150, limit);
    assert!(verdicts.is_empty() && next < LONGEST, "{next:?}");
    let over = Verdict::EndCompanion { app, number: 7, bytes: 201 * MIB, limit: 200 * MIB };
    assert_eq!(look(5, 201, limit), (vec![over], EXCEEDED));
    assert_eq!(look(6, 201, MemoryBound::None).0, []);
    assert_eq!(look(7, 201, MemoryBound::Share(2)).0.len(), 1, "2 % are 163 MiB");
}
