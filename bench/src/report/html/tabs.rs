//! One of several panels at a time, by radio buttons and CSS alone.

use super::escape;

/// The most panels of one group; CSS names them one by one.
const MOST: usize = 24;

/// Panels of which one is shown: their titles and what is in them. A single panel needs no tabs. `group` has to be
/// unique on the page. The panel with the number `first` is shown at first.
pub(super) fn tabs(group: &str, class: &str, panels: &[(String, String)], first: usize) -> String {
    let mut text = format!("<div class=\"tabs {class}\">\n");
    let shown = |index: usize| if index == first { " checked" } else { "" };
    if panels.len() > 1 {
        for (index, (title, _)) in panels.iter().enumerate() {
            let number = index % MOST;
            text += &format!(
                "<input type=\"radio\" name=\"{group}\" id=\"{group}-{index}\" class=\"t{number}\"{}>\
                 <label for=\"{group}-{index}\">{}</label>\n",
                shown(index),
                escape(title)
            );
        }
    }
    text += "<div class=\"panels\">\n";
    for (index, (_, panel)) in panels.iter().enumerate() {
        let class = if panels.len() > 1 { format!("panel p{}", index % MOST) } else { "panel only".into() };
        text += &format!("<div class=\"{class}\">\n{panel}</div>\n");
    }
    text + "</div>\n</div>\n"
}

/// The style that shows a panel when its button is checked.
pub(super) fn style() -> String {
    let rules: Vec<String> = (0..MOST).map(|n| format!(".t{n}:checked~.panels>.p{n}")).collect();
    format!("{}{{display:block}}\n", rules.join(","))
}
