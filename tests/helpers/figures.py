"""Where the parts of a figure lie."""


def assert_inside(figure):
    """That all that is drawn, labels too, is in the figure, but for a point that rounding takes."""
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(box.x0, box.y0, width - box.x1, height - box.y1) > -1 / 72
