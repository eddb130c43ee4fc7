"""Families of geometry."""

from __future__ import annotations

import math

import numpy as np
from sympy import Point, Polygon, Rational

from mappa_envs.tasks.math.families.base import Problem
from mappa_envs.tasks.math.families.build import choose, family, pick, problem

_TRIPLES = tuple(
    (a, b, math.isqrt(a * a + b * b))
    for a in range(3, 100)
    for b in range(a + 1, 100)
    if math.isqrt(a * a + b * b) ** 2 == a * a + b * b
)


def _corners(points: list[tuple[int, int]]) -> str:
    listed = [f"({x}, {y})" for x, y in points]
    return ", ".join(listed[:-1]) + " and " + listed[-1]


def _shoelace(points: list[tuple[int, int]]) -> str:
    turned = [*points[1:], points[0]]
    terms = [f"{x} * {v} - {u} * {y}" for (x, y), (u, v) in zip(points, turned, strict=True)]
    return "abs(" + " + ".join(terms) + ")"


def _polygon_area(rng: np.random.Generator, level: int) -> Problem | None:
    count, size = [(3, 9), (3, 30), (4, 15), (5, 15), (6, 20)][level - 1]
    low = 0 if level <= 2 else -size
    points = [(x, y) for x, y in zip(pick(rng, *[(low, size)] * count), pick(rng, *[(low, size)] * count), strict=True)]
    centre = (sum(x for x, _ in points) / count, sum(y for _, y in points) / count)
    points.sort(key=lambda point: math.atan2(point[1] - centre[1], point[0] - centre[0]))
    if len(set(points)) < count or not _is_convex(points):
        return None
    polygon = Polygon(*(Point(*point, evaluate=False) for point in points), evaluate=False)
    kind = {3: "triangle", 4: "quadrilateral", 5: "pentagon", 6: "hexagon"}[count]
    double = _shoelace(points)
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return problem(
        f"Find the area of the {kind} with corners {_corners(points)}.",
        abs(polygon.area),
        f"{double} / 2",
        [
            double,
            f"{max(xs) - min(xs)} * {max(ys) - min(ys)}",
            f"{max(xs) - min(xs)} * {max(ys) - min(ys)} / 2",
            f"{double} / 4",
        ],
    )


def _is_convex(points: list[tuple[int, int]]) -> bool:
    """Tell whether every turn along points in counter-clockwise order is a strict left turn."""
    n = len(points)
    return all(
        (points[(i + 1) % n][0] - points[i][0]) * (points[(i + 2) % n][1] - points[i][1])
        > (points[(i + 1) % n][1] - points[i][1]) * (points[(i + 2) % n][0] - points[i][0])
        for i in range(n)
    )


def _polygon_angles(rng: np.random.Generator, level: int) -> Problem | None:
    (n,) = pick(rng, [(5, 99), (100, 999), (5, 200), (6, 120), (7, 90)][level - 1])
    if level <= 2:
        return problem(
            f"Find the sum in degrees of the interior angles of a convex polygon with {n} sides.",
            180 * n - 360,
            f"180 * ({n} - 2)",
            [f"180 * {n}", f"360 * ({n} - 2)", f"180 * ({n} - 1)", f"90 * ({n} - 2)"],
        )
    if level == 3:
        return problem(
            f"Find in degrees one interior angle of a regular polygon with {n} sides.",
            180 - Rational(360, n),
            f"180 * ({n} - 2) / {n}",
            [f"360 / {n}", f"180 * ({n} - 2)", f"180 - 180 / {n}"],
        )
    if level == 4:
        (k,) = pick(rng, (2, (n - 1) // 2))
        return problem(
            f"In a regular polygon with corners numbered 1 to {n} in order, find in degrees the angle at "
            "corner 1 "
            f"between the lines to corner 2 and to corner {k + 2}.",
            Rational(180, n) * k,
            f"180 * {k} / {n}",
            [f"360 * {k} / {n}", f"180 * ({k} + 1) / {n}", f"180 * ({n} - 2) / {n}"],
        )
    (m,) = pick(rng, (3, 40))
    if m >= n:
        return None
    return problem(
        f"How many degrees larger is one interior angle of a regular polygon with {n} sides than one of a "
        "regular "
        f"polygon with {m} sides?",
        Rational(360, m) - Rational(360, n),
        f"180 * ({n} - 2) / {n} - 180 * ({m} - 2) / {m}",
        [f"180 * ({n} - {m})", f"360 / ({n} - {m})", f"180 / {m} - 180 / {n}"],
    )


def _lattice_points(rng: np.random.Generator, level: int) -> Problem | None:
    if level <= 2:
        size = 15 if level == 1 else 60
        (g,), (a, b) = pick(rng, (1, 6)), pick(rng, (1, size), (1, size))
        x, y = pick(rng, (0, 9), (0, 9))
        dx, dy = g * a, g * b
        return problem(
            f"How many points with integer coordinates lie on the segment from ({x}, {y}) to ({x + dx}, "
            f"{y + dy}), ends "
            "included?",
            sum(1 for step in range(dx + 1) if step * dy % dx == 0),
            f"math.gcd({dx}, {dy}) + 1",
            [f"math.gcd({dx}, {dy})", f"math.gcd({dx}, {dy}) - 1", f"{dx} + 1", f"{dx} * {dy}"],
        )
    a, b = pick(rng, *[((4, 40), (4, 40)), ((20, 200), (20, 200)), ((3, 40), (3, 40))][level - 3])
    if level == 5:
        r = a * b
        side = math.isqrt(r)
        return problem(
            f"How many points (x, y) with integer coordinates satisfy x^2 + y^2 <= {r}?",
            sum(2 * math.isqrt(r - x * x) + 1 for x in range(-side, side + 1)),
            f"1 + 4 * sum(math.isqrt({r} - x * x) + 1 for x in range(1, {side + 1}))",
            [
                f"(2 * {side} + 1) ** 2",
                f"4 * {r}",
                f"1 + 4 * sum(math.isqrt({r} - x * x) for x in range(1, {side + 1}))",
            ],
        )
    inner = sum((b * (a - x) - 1) // a for x in range(1, a))
    closed = f"(({a} - 1) * ({b} - 1) - math.gcd({a}, {b}) + 1) // 2"
    border = f"{a} + {b} + math.gcd({a}, {b})"
    if level == 3:
        return problem(
            "How many points with integer coordinates lie strictly inside the triangle with corners (0, "
            f"0), ({a}, 0) "
            f"and (0, {b})?",
            inner,
            closed,
            [
                f"{a} * {b} // 2",
                f"{closed} + {border}",
                f"({a} - 1) * ({b} - 1) // 2 + 1",
                f"({a} - 1) * ({b} - 1)",
            ],
        )
    return problem(
        "How many points with integer coordinates lie inside or on the border of the triangle with "
        "corners (0, 0), "
        f"({a}, 0) and (0, {b})?",
        sum(b * (a - x) // a + 1 for x in range(a + 1)),
        f"{closed} + {border}",
        [closed, f"{a} * {b} // 2", f"{closed} + {a} + {b}", f"({a} + 1) * ({b} + 1) // 2"],
    )


def _circle_chord(rng: np.random.Generator, level: int) -> Problem | None:
    r, d = pick(
        rng,
        *[
            ((3, 30), (1, 29)),
            ((20, 150), (5, 149)),
            ((5, 60), (1, 59)),
            ((5, 60), (61, 200)),
            ((5, 60), (1, 59)),
        ][level - 1],
    )
    if (d >= r) != (level == 4):
        return None
    if level <= 2:
        return problem(
            f"A chord of a circle with radius {r} has distance {d} from the center. Find the square of its length.",
            Point(0, 0).distance(Point(2 * r, 0)) ** 2 - 4 * Point(0, 0).distance(Point(0, d)) ** 2,
            f"4 * ({r} ** 2 - {d} ** 2)",
            [
                f"{r} ** 2 - {d} ** 2",
                f"2 * ({r} ** 2 - {d} ** 2)",
                f"4 * ({r} ** 2 + {d} ** 2)",
                f"4 * ({r} - {d}) ** 2",
            ],
        )
    if level == 3:
        (part,) = pick(rng, (1, 40))
        power = (r - d) * (r + d)
        return (
            problem(
                f"A point has distance {d} from the center of a circle with radius {r}. A chord through it "
                "is divided by it "
                f"into two parts, one of them {part} long. How long is the other part?",
                Rational(power, part),
                f"({r} ** 2 - {d} ** 2) / {part}",
                [f"({r} ** 2 + {d} ** 2) / {part}", f"({r} - {d}) / {part}", f"{r} ** 2 / {part}"],
            )
            if r - d <= part <= r + d
            else None
        )
    if level == 4:
        return problem(
            f"A tangent to a circle with radius {r} is drawn from a point at distance {d} from the center. "
            "Find the "
            "square of its length from the point to the circle.",
            Point(0, 0).distance(Point(d, 0)) ** 2 - r**2,
            f"({d} - {r}) * ({d} + {r})",
            [f"({d} - {r}) ** 2", f"{d} ** 2 + {r} ** 2", f"4 * ({d} - {r}) * ({d} + {r})"],
        )
    (e,) = pick(rng, (1, r - 1))
    if e == d:
        return None
    return problem(
        f"Two parallel chords of a circle with radius {r} have distances {d} and {e} from the center. Find "
        "the positive "
        "difference of the squares of their lengths.",
        abs(4 * (r * r - d * d) - 4 * (r * r - e * e)),
        f"4 * abs({d} ** 2 - {e} ** 2)",
        [
            f"abs({d} ** 2 - {e} ** 2)",
            f"4 * abs({d} - {e})",
            f"4 * ({d} - {e}) ** 2",
            f"2 * abs({d} ** 2 - {e} ** 2)",
        ],
    )


def _painted_box(rng: np.random.Generator, level: int) -> Problem | None:
    size = [7, 12, 12, 12, 12][level - 1]
    a, b, c = pick(rng, *[(3, size)] * 3)
    cubes = [
        (x in (0, a - 1)) + (y in (0, b - 1)) + (z in (0, c - 1)) for x in range(a) for y in range(b) for z in range(c)
    ]
    start = f"A block of {a} by {b} by {c} unit cubes is painted on the outside and taken apart."
    inner = f"({a} - 2) * ({b} - 2) * ({c} - 2)"
    edges = f"4 * ({a} + {b} + {c} - 6)"
    faces = f"2 * (({a} - 2) * ({b} - 2) + ({b} - 2) * ({c} - 2) + ({a} - 2) * ({c} - 2))"
    surface = f"2 * ({a} * {b} + {b} * {c} + {a} * {c})"
    if level <= 2:
        return problem(
            f"{start} How many of the cubes have no paint?",
            cubes.count(0),
            inner,
            [
                f"({a} - 1) * ({b} - 1) * ({c} - 1)",
                f"{a} * {b} * {c} - {surface}",
                f"{a} * {b} * {c} - {inner}",
                surface,
            ],
        )
    if level == 3:
        return problem(
            f"{start} How many of the cubes have paint?",
            len(cubes) - cubes.count(0),
            f"{a} * {b} * {c} - {inner}",
            [surface, inner, f"{a} * {b} * {c} - ({a} - 1) * ({b} - 1) * ({c} - 1)"],
        )
    if level == 4:
        return problem(
            f"{start} How many of the cubes have paint on exactly two faces?",
            cubes.count(2),
            edges,
            [f"4 * ({a} + {b} + {c})", faces, f"{edges} + 8", f"4 * ({a} + {b} + {c} - 3)"],
        )
    return problem(
        f"{start} One of the cubes is picked at random. What is the probability that it has paint on exactly one face?",
        Rational(cubes.count(1), len(cubes)),
        f"{faces} / ({a} * {b} * {c})",
        [
            f"{surface} / ({a} * {b} * {c})",
            f"{edges} / ({a} * {b} * {c})",
            f"1 - {inner} / ({a} * {b} * {c})",
        ],
    )


def _right_triangle(rng: np.random.Generator, level: int) -> Problem | None:
    a, b = pick(
        rng,
        *[
            ((2, 40), (2, 40)),
            ((20, 300), (20, 300)),
            ((2, 40), (2, 40)),
            ((2, 30), (2, 30)),
            ((1, 1), (1, 1)),
        ][level - 1],
    )
    start = f"A right triangle has legs {a} and {b}."
    if level <= 2:
        return problem(
            f"{start} Find the square of its hypotenuse.",
            Point(a, 0).distance(Point(0, b)) ** 2,
            f"{a} ** 2 + {b} ** 2",
            [f"({a} + {b}) ** 2", f"{a} * {b}", f"abs({a} ** 2 - {b} ** 2)", f"{a} + {b}"],
        )
    if level == 3:
        return problem(
            f"{start} Find the square of its altitude on the hypotenuse.",
            4 * abs(Polygon(Point(0, 0), Point(a, 0), Point(0, b)).area) ** 2 / Point(a, 0).distance(Point(0, b)) ** 2,
            f"{a} ** 2 * {b} ** 2 / ({a} ** 2 + {b} ** 2)",
            [f"{a} * {b} / ({a} + {b})", f"{a} * {b} / ({a} ** 2 + {b} ** 2)", f"({a} ** 2 + {b} ** 2) / 4"],
        )
    if level == 4:
        # The side of a square that shares the right angle and has a corner on the hypotenuse.
        return problem(
            f"{start} Find the side of the square that has one corner at the right angle and the opposite "
            "corner on the "
            "hypotenuse.",
            1 / (Rational(1, a) + Rational(1, b)),
            f"{a} * {b} / ({a} + {b})",
            [
                f"{a} * {b} / 2",
                f"({a} + {b}) / 4",
                f"{a} * {b} / ({a} ** 2 + {b} ** 2)",
                f"min({a}, {b}) / 2",
            ],
        )
    a, b, c = _TRIPLES[int(rng.integers(len(_TRIPLES)))]
    k = choose(rng, 1, 2, 3, 5)
    a, b, c = a * k, b * k, c * k
    start = f"A right triangle has legs {a} and {b}."
    return problem(
        f"{start} Find the distance squared between the centers of its inscribed and its circumscribed circle.",
        Point(Rational(a, 2), Rational(b, 2)).distance(Point(Rational(a + b - c, 2), Rational(a + b - c, 2))) ** 2,
        f"({c} / 2) ** 2 - {c} * ({a} + {b} - {c}) / 2",
        [f"({c} / 2 - ({a} + {b} - {c}) / 2) ** 2", f"({c} / 2) ** 2", f"(({a} + {b} - {c}) / 2) ** 2"],
    )


GEOMETRY = (
    family("polygon_area", "geometry", "Areas from coordinates.", _polygon_area),
    family("polygon_angles", "geometry", "Angles of polygons.", _polygon_angles),
    family("lattice_points", "geometry", "Integer points on segments, in triangles, in circles.", _lattice_points),
    family("circle_chord", "geometry", "Chords, secants and tangents.", _circle_chord),
    family("painted_box", "geometry", "Unit cubes of a painted block.", _painted_box),
    family("right_triangle", "geometry", "Lengths in right triangles.", _right_triangle),
)
