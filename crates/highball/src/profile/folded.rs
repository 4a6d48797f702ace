//! A line for each stack: names from the outermost call, `;`, and the weight. Many programs read it.

use crate::profile::calls::Calls;

pub(crate) fn folded(calls: &Calls) -> String {
    let mut text = String::new();
    for (stack, weight) in &calls.stacks {
        let names: Vec<String> = stack.iter().map(|name| calls.name(*name).label.replace(';', ":")).collect();
        text += &format!("{} {weight}\n", names.join(";"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::calls::tests::a_report;

    #[test]
    fn a_stack_is_a_line() {
        assert_eq!(folded(&Calls::of(&a_report())), "A:b 2\nA:b;Kernel#sleep 8\n");
    }
}
