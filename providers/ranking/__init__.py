"""Which model answers: classes, order, search. Pure: no I/O and no clock, measurements are handed in."""

from .cards import ModelCard, make_card
from .classes import CHAT_CLASSES, CLASSES, parse_class
from .families import FAMILIES, FamilyRules, ModelClass
from .order import LiveProfile, Standing, Weights
from .ranking import Match, Ranked, Ranking

__all__ = [
    "CHAT_CLASSES",
    "CLASSES",
    "FAMILIES",
    "FamilyRules",
    "LiveProfile",
    "Match",
    "ModelCard",
    "ModelClass",
    "Ranked",
    "Ranking",
    "Standing",
    "Weights",
    "make_card",
    "parse_class",
]
