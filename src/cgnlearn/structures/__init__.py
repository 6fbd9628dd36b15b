"""Ways to a structure: learners, trees and searches."""
