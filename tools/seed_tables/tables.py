"""Tables as Markdown and CSV, and pictures of curves."""

import csv
import html
import math


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def table(path, head, rows):
    """Writes the table to the CSV file `path`; as Markdown it is the result."""
    with open(path, "w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([head, *rows])
    return markdown(head, rows)


COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e"]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 360, 60, 46, 16, 150


def ticks(low, high):
    """At most seven round numbers from low to high."""
    power = 10.0 ** math.floor(math.log10((high - low) / 6)) if high > low else 1.0
    unit = next(power * digit for digit in (1, 2, 5, 10) if (high - low) / (power * digit) <= 6)
    return [k * unit for k in range(math.ceil(low / unit), math.floor(high / unit) + 1)]


def curves(path, across, up, lines):
    """Draws lines, {name: [(x, y), …]}, with the axes named."""
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    low, high = min(ys), max(ys)
    first, last = min(xs), max(xs)
    place_x = lambda x: LEFT + (x - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)
    place_y = lambda y: HEIGHT - BOTTOM - (y - low) / ((high - low) or 1) * (HEIGHT - BOTTOM - TOP)
    text = lambda x, y, words, more="": f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(words)}</text>'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for y in ticks(low, high):
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place_y(y):.1f}" y2="{place_y(y):.1f}" stroke="#ddd"/>',
                  text(LEFT - 6, place_y(y) + 4, f"{y:.4g}", 'text-anchor="end"')]
    for x in ticks(first, last):
        parts.append(text(place_x(x), HEIGHT - BOTTOM + 16, f"{x:.4g}", 'text-anchor="middle"'))
    parts += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, across, 'text-anchor="middle"'),
              text(14, HEIGHT / 2, up, f'text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2})"')]
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in points)
        parts += [f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
                  text(WIDTH - RIGHT + 8, TOP + 14 + 18 * number, f"{name} {points[-1][1]:.3f}", f'fill="{colour}"')]
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join([*parts, "</svg>\n"]))
