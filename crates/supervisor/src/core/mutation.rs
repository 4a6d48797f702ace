//! Faults that can be put into the core, one at a time, to show that the simulator finds them. Outside of tests none can.

/// A fault, at the one place that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// A worker that has died stays in the table.
    LoseDeath,
    /// A worker is retired for its promotion before another serves in its place.
    RelieveEarly,
    /// A canary that does not answer has no deadline.
    ForgetProbeDeadline,
    /// A mold that hangs while it boots has no deadline.
    ForgetBootDeadline,
    /// A restart begins although a refork is under way.
    RestartDuringRefork,
    /// A restart that failed stays in its last stage.
    SkipUndoing,
    /// The old mold is dropped from the books without being killed.
    ForgetOldMold,
    /// A restart that waits does not start after the one before.
    DropWish,
    /// A refork that is refused gets no answer.
    LoseAnswer,
    /// An application that was given up does not look at its folder again.
    ForgetFailedLook,
    /// A promoted mold that dies does not end its refork.
    IgnorePromotedDeath,
    /// A new process in a hot restart has no deadline.
    ForgetUpgradeDeadline,
    /// A worker is replaced before another serves in its place.
    ReplaceEarly,
    /// Workers are replaced as often as that is asked for.
    ReplaceUnpaced,
    /// Any number of workers is replaced at a time.
    ReplaceTogether,
    /// The number of workers changes while others take their places.
    ResizeWhileRolling,
    /// It grows although the memory does not suffice.
    GrowWithoutRoom,
    /// It grows beyond its range.
    GrowBeyondMax,
    /// A mold that rests does not boot for a worker that is wanted.
    RestForGood,
    /// Workers that die are replaced at once, however often.
    ForkAtOnce,
    /// A new version is a success as soon as it serves.
    SucceedAtOnce,
    /// A worker that takes no requests stays.
    KeepUnresponsive,
}

#[cfg(test)]
impl Mutation {
    pub(crate) const ALL: [Mutation; 22] = [
        Mutation::LoseDeath,
        Mutation::RelieveEarly,
        Mutation::ForgetProbeDeadline,
        Mutation::ForgetBootDeadline,
        Mutation::RestartDuringRefork,
        Mutation::SkipUndoing,
        Mutation::ForgetOldMold,
        Mutation::DropWish,
        Mutation::LoseAnswer,
        Mutation::ForgetFailedLook,
        Mutation::IgnorePromotedDeath,
        Mutation::ForgetUpgradeDeadline,
        Mutation::ReplaceEarly,
        Mutation::ReplaceUnpaced,
        Mutation::ReplaceTogether,
        Mutation::ResizeWhileRolling,
        Mutation::GrowWithoutRoom,
        Mutation::GrowBeyondMax,
        Mutation::RestForGood,
        Mutation::ForkAtOnce,
        Mutation::SucceedAtOnce,
        Mutation::KeepUnresponsive,
    ];
}

#[cfg(test)]
thread_local! {
    static CURRENT: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Puts this fault into the core, for this thread.
#[cfg(test)]
pub(crate) fn set(mutation: Option<Mutation>) {
    CURRENT.with(|current| current.set(mutation));
}

#[cfg(test)]
pub(crate) fn is_mutated(mutation: Mutation) -> bool {
    CURRENT.with(|current| current.get() == Some(mutation))
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn is_mutated(_mutation: Mutation) -> bool {
    false
}
