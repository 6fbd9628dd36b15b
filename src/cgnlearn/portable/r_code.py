"""The R file: the portable description as R code, and the function that predicts from it."""

from __future__ import annotations

from typing import Any

from cgnlearn.portable.networks import Description
from cgnlearn.portable.page import resource

PER_LINE = 12  # numbers
PLAIN = " _.,()-"  # signs that stand for themselves
HEAD = """\
# {title}
# Written by cgnlearn {version}. In R: source("model.R"); predict_cgn(newdata)
#
# newdata: a data frame with the columns of the training data, or all of them in their order; NA where a value is
# missing. type: "prob" for probabilities (samples, classes), "log" for their logarithms, "class" for the most probable
# class. prior: probabilities of the classes where it is used, if they differ from those of the training data.

predict_cgn <- local({{
model <- {model}

{reader}
predict_log <- reader_of(model)
labels <- as.character(unlist(model$classes))

function(newdata, type = c("prob", "log", "class"), prior = NULL) {{
  type <- match.arg(type)
  log_prior <- if (is.null(prior)) model$class_log_prior else log(prior / sum(prior))
  if (length(log_prior) != length(labels))
    stop("prior must have a probability for each of ", length(labels), " classes")
  found <- predict_log(newdata, log_prior)
  dimnames(found) <- list(NULL, labels)
  switch(type, prob = exp(found), log = found, class = labels[max.col(found, ties.method = "first")])
}}
}})
"""


def r_code(description: Description) -> str:
    """The content of the file, in ASCII."""
    title = "".join(char if char.isprintable() else " " for char in description["title"] or "A classifier")
    title = title.encode("ascii", "replace").decode()
    parts = {"title": title, "version": description["provenance"]["cgnlearn"]}
    read = {key: value for key, value in description.items() if key != "interval"}  # it predicts without intervals
    return HEAD.format(**parts, model=as_r(read), reader=resource("reader.R"))


def as_r(value: Any) -> str:
    """Plain values as R code: lists of numbers as vectors, null in them as NA."""
    if isinstance(value, dict):
        return f"list({', '.join(f'{_text(key)} = {as_r(part)}' for key, part in value.items())})"
    if isinstance(value, list):
        if value and all(part is None or _is_number(part) for part in value):
            texts = [as_r(part) for part in value]
            lines = (", ".join(texts[i : i + PER_LINE]) for i in range(0, len(texts), PER_LINE))
            return "c(" + ",\n".join(lines) + ")"
        return "list(" + ",\n".join(as_r(part) for part in value) + ")"
    if value is None:
        return "NA_real_"
    if isinstance(value, bool):
        return str(value).upper()
    return _text(value) if isinstance(value, str) else repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(text: str) -> str:
    """A string literal in ASCII, in which quotes, backslashes and other signs do not stand for themselves."""
    plain = (char if char.isascii() and (char.isalnum() or char in PLAIN) else f"\\U{{{ord(char):x}}}" for char in text)
    return f'"{"".join(plain)}"'
