//! Styles of shapes: as classes of the page's style sheet, or as attributes on white paper.
//!
//! On paper every shape has its own colours and sizes: typesetting programs support neither variables nor media queries, and some no
//! style sheets. Protocols also differ in the shape of their marks, for print without colour.

use std::fmt;

/// A protocol's colour and mark, by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ProtocolStyle {
    /// The class that sets `--tone` on the page.
    pub(crate) class: &'static str,
    /// Colour on paper.
    color: &'static str,
    /// Outline of its mark: 2 wide, centred at 0 0.
    mark: MarkShape,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MarkShape {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Cross,
}

const fn tone(class: &'static str, color: &'static str, mark: MarkShape) -> ProtocolStyle {
    ProtocolStyle { class, color, mark }
}

/// The protocols with fixed styles.
const PROTOCOL_STYLES: [(&str, ProtocolStyle); 6] = [
    ("http", tone("p-http", "#7a8699", MarkShape::Circle)),
    ("https", tone("p-https", "#34435e", MarkShape::Square)),
    ("spdy", tone("p-spdy", "#d9620f", MarkShape::Diamond)),
    (
        "spdy-plain",
        tone("p-spdy-plain", "#c79a1b", MarkShape::Diamond),
    ),
    ("h2", tone("p-h2", "#1d8457", MarkShape::Up)),
    ("h3", tone("p-h3", "#2f6fd0", MarkShape::Down)),
];

/// Styles of all other protocols: the same name has the same colour.
const FALLBACK_STYLES: [ProtocolStyle; 3] = [
    tone("p-other", "#8a5fb5", MarkShape::Cross),
    tone("p-other-2", "#b0417a", MarkShape::Square),
    tone("p-other-3", "#0f8b8d", MarkShape::Circle),
];

impl ProtocolStyle {
    /// The style of `protocol`.
    pub(crate) fn of(protocol: &str) -> Self {
        let entry = PROTOCOL_STYLES.iter().find(|(name, _)| *name == protocol);
        entry.map_or_else(
            || {
                let sum: usize = protocol.bytes().map(usize::from).sum();
                FALLBACK_STYLES[sum % FALLBACK_STYLES.len()]
            },
            |(_, tone)| *tone,
        )
    }

    /// The path of its mark around (x, y), about `r` to each side.
    pub(crate) fn mark(self, x: f64, y: f64, r: f64) -> String {
        match self.mark {
            MarkShape::Circle => {
                format!(
                    "M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",
                    x - r,
                    d = 2.0 * r
                )
            }
            MarkShape::Square => {
                let half = r * 0.9;
                format!(
                    "M{:.1} {:.1}h{d}v{d}h-{d}z",
                    x - half,
                    y - half,
                    d = 2.0 * half
                )
            }
            MarkShape::Diamond => {
                let r = r * 1.3;
                format!(
                    "M{x:.1} {:.1}l{r:.2} {r:.2}l-{r:.2} {r:.2}l-{r:.2} -{r:.2}z",
                    y - r
                )
            }
            MarkShape::Up | MarkShape::Down => {
                let turn = if self.mark == MarkShape::Up {
                    1.0
                } else {
                    -1.0
                };
                let (half, high) = (r * 1.2, r * 2.1);
                format!(
                    "M{:.1} {:.1}h{:.2}l-{half:.2} {:.2}z",
                    x - half,
                    y + turn * r,
                    2.0 * half,
                    -turn * high
                )
            }
            MarkShape::Cross => {
                let (t, l) = (r * 0.4, r * 0.8);
                format!(
                    "M{:.1} {:.1}h{w:.2}v{l:.2}h{l:.2}v{w:.2}h-{l:.2}v{l:.2}h-{w:.2}v-{l:.2}h-{l:.2}v-{w:.2}h{l:.2}z",
                    x - t,
                    y - t - l,
                    w = 2.0 * t
                )
            }
        }
    }
}

/// The meaning of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ShapeStyle {
    /// Background lines that help to read values.
    Grid,
    /// The line where two protocols are equal.
    Midline,
    /// Load times of a protocol, joined by a line.
    Line(ProtocolStyle),
    /// The interval of a median.
    Whisker(ProtocolStyle),
    /// One median.
    Mark(ProtocolStyle),
    /// One of many values: shapes behind it stay visible.
    Faint(ProtocolStyle),
    /// An amount.
    Bar(ProtocolStyle),
    /// A part of a bar, or a smaller amount beside it.
    Pale(ProtocolStyle),
    /// Faster, from 0 to 1.
    Good(f64),
    /// Slower, from 0 to 1.
    Bad(f64),
    /// A complete value.
    Complete,
    /// A value that needs attention.
    Suspect,
    /// A missing value.
    Absent,
    /// A phase of an exchange.
    Phase(Phase),
    /// First contentful paint.
    Fcp,
    /// Largest contentful paint.
    Lcp,
    /// DOMContentLoaded.
    Dcl,
    /// Load.
    Load,
    /// An invisible area that a pointer can hit.
    HitArea,
}

/// A phase of an exchange. The phases are in the order of time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    Queued,
    Dns,
    Connect,
    Tls,
    Wait,
    Receive,
}

impl Phase {
    pub(crate) const ALL: [Self; 6] = [
        Self::Queued,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Wait,
        Self::Receive,
    ];

    /// Its displayed name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Dns => "name look-up",
            Self::Connect => "connect",
            Self::Tls => "TLS",
            Self::Wait => "wait",
            Self::Receive => "receive",
        }
    }

    /// Its class on the page.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Wait => "wait",
            Self::Receive => "receive",
        }
    }

    const fn color(self) -> &'static str {
        match self {
            Self::Queued => "#b9bfc8",
            Self::Dns => "#0f8b8d",
            Self::Connect => "#e09f1f",
            Self::Tls => "#9b4fb0",
            Self::Wait => "#a9d3a0",
            Self::Receive => "#2f7fd1",
        }
    }
}

/// Maximum opacity of [`ShapeStyle::Good`] and [`ShapeStyle::Bad`]: digits must stay readable on them.
const MAX_OPACITY: f64 = 0.72;

/// The attributes of a shape on the page.
pub(crate) struct HtmlAttributes(pub(crate) ShapeStyle);

impl fmt::Display for HtmlAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = |f: &mut fmt::Formatter<'_>, name: &str, tone: ProtocolStyle| {
            write!(f, "class=\"{name} {}\"", tone.class)
        };
        match self.0 {
            ShapeStyle::Line(tone) => class(f, "line", tone),
            ShapeStyle::Whisker(tone) => class(f, "whisker", tone),
            ShapeStyle::Mark(tone) => class(f, "dot", tone),
            ShapeStyle::Faint(tone) => class(f, "dot faint", tone),
            ShapeStyle::Bar(tone) => class(f, "bar", tone),
            ShapeStyle::Pale(tone) => class(f, "bar pale", tone),
            ShapeStyle::Good(part) => {
                write!(f, "class=\"good\" opacity=\"{:.2}\"", part * MAX_OPACITY)
            }
            ShapeStyle::Bad(part) => {
                write!(f, "class=\"bad\" opacity=\"{:.2}\"", part * MAX_OPACITY)
            }
            ShapeStyle::Phase(phase) => write!(f, "class=\"{}\"", phase.class()),
            ShapeStyle::Grid => f.write_str("class=\"grid\""),
            ShapeStyle::Midline => f.write_str("class=\"midline\""),
            ShapeStyle::Complete => f.write_str("class=\"whole\""),
            ShapeStyle::Suspect => f.write_str("class=\"doubtful\""),
            ShapeStyle::Absent => f.write_str("class=\"absent\""),
            ShapeStyle::Fcp => f.write_str("class=\"fcp-line\""),
            ShapeStyle::Lcp => f.write_str("class=\"lcp-line\""),
            ShapeStyle::Dcl => f.write_str("class=\"dcl-line\""),
            ShapeStyle::Load => f.write_str("class=\"load-line\""),
            ShapeStyle::HitArea => f.write_str("class=\"hit\""),
        }
    }
}

/// The attributes of its sample in a legend of the page, which is a field of `--tone`.
pub(crate) struct LegendAttributes(pub(crate) ShapeStyle);

impl fmt::Display for LegendAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mixed = |f: &mut fmt::Formatter<'_>, name: &str, opacity: f64| {
            let percent = opacity * 100.0;
            write!(
                f,
                "class=\"field\" style=\"--tone:color-mix(in srgb,var(--{name}) {percent:.0}%,transparent)\""
            )
        };
        match self.0 {
            ShapeStyle::Line(tone)
            | ShapeStyle::Whisker(tone)
            | ShapeStyle::Mark(tone)
            | ShapeStyle::Faint(tone)
            | ShapeStyle::Bar(tone)
            | ShapeStyle::Pale(tone) => write!(f, "class=\"{}\"", tone.class),
            ShapeStyle::Good(part) => mixed(f, "good", part * MAX_OPACITY),
            ShapeStyle::Bad(part) => mixed(f, "bad", part * MAX_OPACITY),
            ShapeStyle::Complete => mixed(f, "whole", 1.0),
            ShapeStyle::Suspect => mixed(f, "doubtful", 1.0),
            ShapeStyle::Phase(phase) => write!(f, "class=\"{}\"", phase.class()),
            ShapeStyle::Fcp => f.write_str("class=\"fcp-mark\""),
            ShapeStyle::Lcp => f.write_str("class=\"lcp-mark\""),
            ShapeStyle::Dcl => f.write_str("class=\"dcl-mark\""),
            ShapeStyle::Load => f.write_str("class=\"load-mark\""),
            ShapeStyle::Absent => f.write_str("class=\"frame\""),
            ShapeStyle::Midline => f.write_str("class=\"dashes\""),
            ShapeStyle::Grid | ShapeStyle::HitArea => f.write_str("hidden"),
        }
    }
}

/// The attributes of a shape on paper.
pub(crate) struct SvgAttributes(pub(crate) ShapeStyle);

impl fmt::Display for SvgAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stroke = |f: &mut fmt::Formatter<'_>, color: &str, width: f64| {
            write!(
                f,
                "fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\""
            )
        };
        let fill = |f: &mut fmt::Formatter<'_>, color: &str, opacity: f64| match opacity {
            1.0 => write!(f, "fill=\"{color}\""),
            _ => write!(f, "fill=\"{color}\" fill-opacity=\"{opacity:.2}\""),
        };
        match self.0 {
            ShapeStyle::Grid => stroke(f, "#d8dbe0", 0.6),
            ShapeStyle::Midline => {
                stroke(f, "#1d2126", 0.9)?;
                f.write_str(" stroke-dasharray=\"4 3\"")
            }
            ShapeStyle::Line(tone) => {
                stroke(f, tone.color, 1.6)?;
                f.write_str(" stroke-linejoin=\"round\"")
            }
            ShapeStyle::Whisker(tone) => stroke(f, tone.color, 1.0),
            ShapeStyle::Mark(tone) | ShapeStyle::Bar(tone) => fill(f, tone.color, 1.0),
            ShapeStyle::Faint(tone) => fill(f, tone.color, 0.55),
            ShapeStyle::Pale(tone) => fill(f, tone.color, 0.45),
            ShapeStyle::Good(part) => fill(f, "#2f6fb3", part * MAX_OPACITY),
            ShapeStyle::Bad(part) => fill(f, "#c62f2f", part * MAX_OPACITY),
            ShapeStyle::Complete => fill(f, "#9fb8cc", 1.0),
            ShapeStyle::Suspect => fill(f, "#e09f1f", 1.0),
            ShapeStyle::Absent => stroke(f, "#9aa4af", 0.8),
            ShapeStyle::Phase(phase) => fill(f, phase.color(), 1.0),
            ShapeStyle::Fcp => stroke(f, "#1b7f43", 1.2),
            ShapeStyle::Lcp => stroke(f, "#a35a00", 1.2),
            ShapeStyle::Dcl => stroke(f, "#2146c7", 1.2),
            ShapeStyle::Load => stroke(f, "#c62f2f", 1.2),
            ShapeStyle::HitArea => f.write_str("fill=\"none\""),
        }
    }
}

/// The use of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TextStyle {
    /// Under an axis, or anywhere with a given middle.
    Axis,
    /// Before an axis: its end is given.
    Before,
    /// After something: its start is given.
    After,
    /// Name of a row; its end is given.
    Name,
    /// Name of a row of a waterfall.
    Small,
    /// A figure within a field.
    Cell,
    /// A figure after a bar.
    Value,
    /// Caption above a panel; on paper only, because the page has its own captions.
    Caption,
    /// Conditions of a measurement under a figure, on paper only.
    Condition,
    /// Host of a row of a waterfall; its start is given.
    Host,
}

impl TextStyle {
    /// Height in units of the drawing.
    pub(crate) const fn size(self) -> f64 {
        match self {
            Self::Axis | Self::Before | Self::After => 9.0,
            Self::Small | Self::Host | Self::Condition => 8.5,
            Self::Cell => 9.5,
            Self::Name | Self::Value => 10.0,
            Self::Caption => 11.0,
        }
    }

    /// Class on the page.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Axis => "t-axis",
            Self::Before => "t-before",
            Self::After => "t-after",
            Self::Name => "t-name",
            Self::Small => "t-small",
            Self::Cell => "t-cell",
            Self::Value => "t-value",
            Self::Caption => "t-caption",
            Self::Condition => "t-condition",
            Self::Host => "t-host",
        }
    }

    /// Which point of the text is given.
    pub(crate) const fn anchor(self) -> &'static str {
        match self {
            Self::Axis | Self::Cell => "middle",
            Self::Before | Self::Name | Self::Small => "end",
            Self::After | Self::Value | Self::Caption | Self::Condition | Self::Host => "start",
        }
    }

    /// Colour on paper.
    pub(crate) const fn color(self) -> &'static str {
        match self {
            Self::Axis
            | Self::Before
            | Self::After
            | Self::Small
            | Self::Condition
            | Self::Host => "#4a535d",
            Self::Name | Self::Cell | Self::Value | Self::Caption => "#1d2126",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_keeps_its_colour_and_no_two_listed_ones_share_it() {
        assert_eq!(ProtocolStyle::of("gopher"), ProtocolStyle::of("gopher"));
        assert_eq!(ProtocolStyle::of("spdy").class, "p-spdy");
        for (at, (name, tone)) in PROTOCOL_STYLES.iter().enumerate() {
            let rest = PROTOCOL_STYLES.iter().skip(at + 1);
            let shared = rest.map(|(other, tone)| (other, tone.color));
            let shared: Vec<_> = shared.filter(|(_, color)| *color == tone.color).collect();
            assert!(shared.is_empty(), "{name} and {shared:?}");
        }
    }

    #[test]
    fn svg_files_use_no_css_variables_or_classes() {
        let tone = ProtocolStyle::of("spdy");
        let inks = [
            ShapeStyle::Grid,
            ShapeStyle::Midline,
            ShapeStyle::Line(tone),
            ShapeStyle::Whisker(tone),
            ShapeStyle::Faint(tone),
            ShapeStyle::Good(0.5),
            ShapeStyle::Absent,
            ShapeStyle::Phase(Phase::Tls),
            ShapeStyle::HitArea,
        ];
        for ink in inks {
            let paper = SvgAttributes(ink).to_string();
            assert!(paper.starts_with("fill=\""), "{paper}");
            assert!(
                !paper.contains("var(") && !paper.contains("class"),
                "{paper}"
            );
        }
    }
}
