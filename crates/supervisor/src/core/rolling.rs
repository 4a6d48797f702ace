//! The next step towards the right number of workers of the right generation: a pure function of their numbers. It
//! serves a restart, undoing one, and adding or removing a worker.

/// The part of the pool that takes the place of others at a time, if the memory suffices: a tenth.
pub(crate) const ROLLED_PART: u16 = 10;

/// The numbers of workers, seen from the generation that is to stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The wanted number of workers.
    pub(crate) wanted: usize,
    /// The processes beyond that number that may exist while one generation takes the place of another.
    pub(crate) surge: usize,
    /// Workers of the generation that stays that serve.
    pub(crate) serving: usize,
    /// Workers among them that start slowly: no other may be retired for them yet.
    pub(crate) starting_slowly: usize,
    /// Workers of the generation that stays that do not serve yet.
    pub(crate) coming: usize,
    /// Workers of all other generations that serve.
    pub(crate) others_serving: usize,
    /// Workers of all other generations that still exist but get no requests any more.
    pub(crate) others_leaving: usize,
}

/// One step towards what should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// Fork a worker of the generation that stays.
    Fork,
    /// Retire a worker of another generation.
    RetireOther,
    /// Retire a worker of the generation that stays: there are too many.
    RetireSurplus,
    /// Wait for what is under way, or for nothing.
    Wait,
}

impl Tally {
    /// The next step.
    pub(crate) fn next_move(&self) -> Move {
        if self.others_serving == 0 && self.serving > self.wanted {
            return Move::RetireSurplus;
        }
        if self.others_serving > 0 && self.serving - self.starting_slowly + self.others_serving > self.wanted
        {
            return Move::RetireOther;
        }
        if self.serving + self.coming < self.wanted && self.has_room() {
            return Move::Fork;
        }
        Move::Wait
    }

    /// Whether the generation that stays has taken every place.
    pub(crate) fn is_settled(&self) -> bool {
        self.serving >= self.wanted && self.others_serving == 0
    }

    /// The memory that a restart takes beyond the usual is bounded. (Without one, nothing is in the way of a worker
    /// that replaces another.)
    fn has_room(&self) -> bool {
        let others = self.others_serving + self.others_leaving;
        others == 0 || self.serving + self.coming + others < self.wanted + self.surge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A roll from `wanted` old workers to new ones, played to its end: the moves, and the most processes and the
    /// fewest that served at any time.
    fn roll(wanted: usize, surge: usize) -> (Vec<Move>, usize, usize) {
        let mut tally = Tally { wanted, surge, serving: 1, others_serving: wanted, ..Tally::default() };
        let (mut moves, mut most, mut fewest) = (Vec::new(), 0, usize::MAX);
        while !tally.is_settled() || tally.others_leaving > 0 {
            match tally.next_move() {
                Move::Fork => tally.coming += 1,
                Move::RetireOther => {
                    tally.others_serving -= 1;
                    tally.others_leaving += 1;
                }
                Move::RetireSurplus => panic!("nothing is too many here"),
                Move::Wait if tally.others_leaving > 0 => tally.others_leaving -= 1,
                Move::Wait => {
                    tally.coming -= 1;
                    tally.serving += 1;
                }
            }
            moves.push(tally.next_move());
            let all = tally.serving + tally.coming + tally.others_serving + tally.others_leaving;
            most = most.max(all);
            fewest = fewest.min(tally.serving + tally.others_serving);
        }
        (moves, most, fewest)
    }

    #[test]
    fn a_roll_keeps_the_number_and_stays_within_the_surge() {
        for wanted in 1..6 {
            for surge in 1..4 {
                let (_, most, fewest) = roll(wanted, surge);
                assert!(most <= wanted + surge, "{wanted} workers, surge {surge}: {most} processes");
                assert!(fewest >= wanted, "{wanted} workers, surge {surge}: {fewest} serve");
            }
        }
    }

    #[test]
    fn no_other_is_retired_for_a_worker_that_starts_slowly() {
        let tally = Tally { wanted: 4, surge: 2, serving: 2, others_serving: 4, ..Tally::default() };
        assert_eq!(tally.next_move(), Move::RetireOther);
        assert_eq!(Tally { starting_slowly: 2, ..tally }.next_move(), Move::Wait);
        let one_is_fast = Tally { starting_slowly: 1, ..tally };
        assert_eq!(one_is_fast.next_move(), Move::RetireOther);
        assert_eq!(Tally { others_serving: 3, ..one_is_fast }.next_move(), Move::Fork);
    }

    #[test]
    fn without_a_restart_the_missing_are_forked_at_once() {
        let tally = Tally { wanted: 4, surge: 1, serving: 1, coming: 1, ..Tally::default() };
        assert_eq!(tally.next_move(), Move::Fork);
        assert_eq!(Tally { coming: 3, ..tally }.next_move(), Move::Wait);
    }

    #[test]
    fn one_worker_less_is_one_retired() {
        let tally = Tally { wanted: 3, surge: 1, serving: 4, ..Tally::default() };
        assert_eq!(tally.next_move(), Move::RetireSurplus);
        assert_eq!(Tally { serving: 3, ..tally }.next_move(), Move::Wait);
    }

    #[test]
    fn a_restart_that_is_taken_back_restores_the_old_ones_before_the_last_new_one_goes() {
        // Three of four were replaced; now the old generation stays.
        let tally = Tally { wanted: 4, surge: 1, serving: 1, others_serving: 3, ..Tally::default() };
        assert_eq!(tally.next_move(), Move::Fork);
        let tally = Tally { serving: 2, ..tally };
        assert_eq!(tally.next_move(), Move::RetireOther);
        assert!(!tally.is_settled());
        assert!(Tally { serving: 4, others_serving: 0, others_leaving: 1, ..tally }.is_settled());
    }
}
