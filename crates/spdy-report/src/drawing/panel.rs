//! One drawing: shapes in its own units, for the page or for paper.

use std::fmt::{self, Write};

use super::shape_style::{HtmlAttributes, ShapeStyle, SvgAttributes, TextStyle};
use crate::text::Text;

/// Maximum number of page pixels per unit.
const MAGNIFIED: f64 = 1.4;

/// One drawing.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// Its content, within its figure.
    pub(crate) caption: String,
    /// Its content, as a title that is understood alone.
    pub(crate) title: String,
    /// Its figures as text, for readers that cannot see the drawing.
    pub(crate) description: String,
    /// CSS classes of its figure on the page, by which a filter hides it.
    pub(crate) class: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    shapes: Vec<Shape>,
}

#[derive(Clone, Debug)]
enum Shape {
    Path {
        ink: ShapeStyle,
        path: String,
        title: String,
    },
    Rect {
        ink: ShapeStyle,
        place: [f64; 4],
        title: String,
    },
    Text {
        letters: TextStyle,
        place: [f64; 2],
        turned: bool,
        text: String,
    },
    /// Starts a group that is one target for a pointer, with these CSS classes.
    Open {
        title: String,
        class: String,
    },
    Close,
}

/// The target of a drawing.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Format {
    Html,
    Svg,
}

impl Panel {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self {
            caption: String::new(),
            title: String::new(),
            description: String::new(),
            class: String::new(),
            width,
            height,
            shapes: Vec::new(),
        }
    }

    /// A path, with a title if that is not empty.
    pub(crate) fn path(
        &mut self,
        ink: ShapeStyle,
        path: impl Into<String>,
        title: impl Into<String>,
    ) {
        let (path, title) = (path.into(), title.into());
        self.shapes.push(Shape::Path { ink, path, title });
    }

    /// Draws a rectangle: left, top, width, height.
    pub(crate) fn rect(&mut self, ink: ShapeStyle, place: [f64; 4], title: impl Into<String>) {
        let title = title.into();
        self.shapes.push(Shape::Rect { ink, place, title });
    }

    /// Draws a text with its vertical middle at `y`.
    pub(crate) fn text(&mut self, letters: TextStyle, x: f64, y: f64, text: impl Into<String>) {
        self.shapes.push(Shape::Text {
            letters,
            place: [x, y],
            turned: false,
            text: text.into(),
        });
    }

    /// Draws a text that runs upwards, with its middle at (x, y).
    pub(crate) fn vertical_text(&mut self, x: f64, y: f64, text: impl Into<String>) {
        self.shapes.push(Shape::Text {
            letters: TextStyle::Axis,
            place: [x, y],
            turned: true,
            text: text.into(),
        });
    }

    /// Makes everything that `draw` draws one target for a pointer.
    pub(crate) fn group(&mut self, title: impl Into<String>, draw: impl FnOnce(&mut Self)) {
        self.classed_group("", title, draw);
    }

    /// The same with CSS classes, by which a filter hides it on the page.
    pub(crate) fn classed_group(
        &mut self,
        class: impl Into<String>,
        title: impl Into<String>,
        draw: impl FnOnce(&mut Self),
    ) {
        let (class, title) = (class.into(), title.into());
        self.shapes.push(Shape::Open { title, class });
        draw(self);
        self.shapes.push(Shape::Close);
    }

    /// Writes the picture as an element of a page; `id` is unique there.
    pub(crate) fn write_html(&self, out: &mut String, id: &str, class: &str) -> fmt::Result {
        // A small drawing is not enlarged to the available width.
        let most = self.width * MAGNIFIED;
        write!(
            out,
            "<svg class=\"chart {class}\" viewBox=\"0 0 {} {}\" style=\"max-width:{most}px\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
            self.width,
            self.height,
            Text(&self.title),
            MultilineText(&self.description)
        )?;
        self.shapes(out, Format::Html)?;
        write!(out, "</svg>")
    }

    /// Writes its shapes for paper, without an element around them.
    pub(crate) fn write_svg(&self, out: &mut String) -> fmt::Result {
        self.shapes(out, Format::Svg)
    }

    fn shapes(&self, out: &mut String, ground: Format) -> fmt::Result {
        for shape in &self.shapes {
            match shape {
                Shape::Path { ink, path, title } => {
                    write!(out, "<path {} d=\"{path}\"", StyleAttributes(*ink, ground))?;
                    close(out, "path", title, ground)?;
                }
                Shape::Rect {
                    ink,
                    place: [x, y, width, height],
                    title,
                } => {
                    if *ink == ShapeStyle::HitArea && ground == Format::Svg {
                        continue;
                    }
                    write!(
                        out,
                        "<rect {} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                        StyleAttributes(*ink, ground),
                        RoundedNumber(*x),
                        RoundedNumber(*y),
                        RoundedNumber(width.max(0.0)),
                        RoundedNumber(height.max(0.0))
                    )?;
                    close(out, "rect", title, ground)?;
                }
                Shape::Text {
                    letters,
                    place: [x, y],
                    turned,
                    text,
                } => {
                    // Shifts by half the height of a digit: not every renderer can centre text vertically.
                    let down = letters.size() * 0.35;
                    match ground {
                        Format::Html => write!(out, "<text class=\"{}\"", letters.class())?,
                        Format::Svg => write!(
                            out,
                            "<text font-size=\"{}\" fill=\"{}\" text-anchor=\"{}\"",
                            letters.size(),
                            letters.color(),
                            letters.anchor()
                        )?,
                    }
                    if *turned {
                        write!(
                            out,
                            " transform=\"translate({} {}) rotate(-90)\"",
                            RoundedNumber(x + down),
                            RoundedNumber(*y)
                        )?;
                    } else {
                        write!(
                            out,
                            " x=\"{}\" y=\"{}\"",
                            RoundedNumber(*x),
                            RoundedNumber(y + down)
                        )?;
                    }
                    write!(out, ">{}</text>", Text(text))?;
                }
                Shape::Open { title, class } => {
                    match ground {
                        Format::Html => write!(out, "<g{}>", ClassAttribute(class))?,
                        Format::Svg => write!(out, "<g>")?,
                    }
                    titled(out, title, ground)?;
                }
                Shape::Close => write!(out, "</g>")?,
            }
        }
        Ok(())
    }
}

fn close(out: &mut String, name: &str, title: &str, ground: Format) -> fmt::Result {
    if title.is_empty() || ground == Format::Svg {
        return write!(out, "/>");
    }
    write!(out, ">")?;
    titled(out, title, ground)?;
    write!(out, "</{name}>")
}

/// Titles are for pointers, so paper has none.
fn titled(out: &mut String, title: &str, ground: Format) -> fmt::Result {
    if title.is_empty() || ground == Format::Svg {
        return Ok(());
    }
    write!(out, "<title>{}</title>", MultilineText(title))
}

/// A `class` attribute; nothing without classes.
pub(crate) struct ClassAttribute<'a>(pub(crate) &'a str);

impl fmt::Display for ClassAttribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            class => write!(f, " class=\"{class}\""),
        }
    }
}

struct StyleAttributes(ShapeStyle, Format);

impl fmt::Display for StyleAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Format::Html => HtmlAttributes(self.0).fmt(f),
            Format::Svg => SvgAttributes(self.0).fmt(f),
        }
    }
}

/// Rounded to a tenth of a unit, which is not visible.
struct RoundedNumber(f64);

impl fmt::Display for RoundedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // Not -0.
        write!(f, "{}", if tenths == 0.0 { 0.0 } else { tenths })
    }
}

/// A text of several lines. Each line is shortened and escaped by itself.
struct MultilineText<'a>(&'a str);

impl fmt::Display for MultilineText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.0.split('\n').enumerate() {
            if number > 0 {
                f.write_char('\n')?;
            }
            Text(line).fmt(f)?;
        }
        Ok(())
    }
}
