//! A regression line, whose slope counts round trips.

/// A straight line through points, by least squares.
///
/// On an idle link, load time over round-trip time is such a line, and its slope is the number of round trips of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Increase of y for 1 of x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
}

impl Line {
    /// The line that fits `points` best; `None` if fewer than two of them differ in x.
    #[must_use]
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let (sum_x, sum_y) = points
            .iter()
            .fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (mean_x, mean_y) = (sum_x / count, sum_y / count);
        let (mut spread, mut together) = (0.0, 0.0);
        for (x, y) in points {
            spread += (x - mean_x) * (x - mean_x);
            together += (x - mean_x) * (y - mean_y);
        }
        let slope = together / spread;
        (spread > 0.0).then_some(Self {
            slope,
            intercept: mean_y - slope * mean_x,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_of_a_line_is_that_line() {
        let points = [
            (200.0, 7_505.0),
            (400.0, 14_705.0),
            (800.0, 29_105.0),
            (1_000.0, 36_305.0),
        ];
        let line = Line::fit(&points).unwrap();
        assert!(
            (line.slope - 36.0).abs() < 1e-9 && (line.intercept - 305.0).abs() < 1e-6,
            "{line:?}"
        );
    }

    #[test]
    fn one_x_makes_no_line() {
        assert_eq!(Line::fit(&[]), None);
        assert_eq!(Line::fit(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }
}
