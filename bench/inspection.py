"""The quality page of spectra: planted faults that it names, and false alarms in clean folders.

Simulated folders of 40 samples with one spectrum and of 20 with three, with and without classes. In every second one
eight spectra, drawn at random, get a fault each.

python bench/inspection.py [--folders N] [--write]
"""

import argparse
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cgnlearn.spectra import Spectrum, make_raw_spectra
from cgnlearn.spectra.folders import Folder
from cgnlearn.spectra.inspection import inspected
from cgnlearn.spectra.simulation import FORMATS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "bench-inspection.md"
N_POINTS = 6000
NAMED = {  # a fault that is planted, and the words that name it
    "signal at 4% of its height": {"signal low"},
    "noise only": {"few peaks", "signal low"},
    "clipped at the quantile 0.98": {"saturated"},
    "all zero": {"empty"},
    "upper half of m/z missing": {"other m/z range"},
    "another kind of sample": {"unlike the others"},
    "m/z off by 0.6%": {"m/z shifted"},
    "baseline of eight times the mean": {"baseline high", "total ion current high"},
}


def faulty(fault: str, spectrum: Spectrum, rng: np.random.Generator, seed: int) -> Spectrum:
    """The spectrum with a fault."""
    mz, intensity = spectrum.mz, spectrum.intensity
    middle, mean = np.median(intensity), intensity.mean()
    if fault.startswith("signal"):
        intensity = middle + 0.04 * (intensity - middle) + rng.normal(0, 4, len(mz))
    elif fault.startswith("noise"):
        intensity = 20 + 30 * np.exp(-np.linspace(0, 4, len(mz))) + rng.normal(0, 5, len(mz))
    elif fault.startswith("clipped"):
        intensity = np.minimum(intensity, np.quantile(intensity, 0.98))
    elif fault == "all zero":
        intensity = np.zeros(len(mz))
    elif fault.startswith("upper half"):
        mz, intensity = mz[mz < 6000], intensity[mz < 6000]
    elif fault.startswith("another"):
        intensity = make_raw_spectra(2, n_points=N_POINTS, random_state=10_000 + seed).spectra[0].intensity
    elif fault.startswith("m/z"):
        mz = mz * 1.006
    else:
        intensity = intensity + 8 * mean + rng.normal(0, 2 * np.sqrt(8 * mean), len(mz))
    return Spectrum(mz, np.rint(np.maximum(intensity, 0)), spectrum.metadata)


def measured(n_folders: int) -> tuple[Counter[str], Counter[str], int, int, int]:
    """Planted faults, those named, clean spectra, false alarms, and folders."""
    planted, named = Counter(), Counter()
    n_clean = n_false = n_done = 0
    for seed in range(n_folders):
        for n_samples, n_replicates in ((40, 1), (20, 3)):
            made = make_raw_spectra(n_samples, n_replicates=n_replicates, n_points=N_POINTS, random_state=seed)
            for has_faults in (False, True):
                spectra, rng, at = list(made.spectra), np.random.default_rng(seed), {}
                if has_faults:
                    places = rng.choice(len(spectra), len(NAMED), replace=False).tolist()
                    at = dict(zip(places, NAMED, strict=True))
                for i, fault in at.items():
                    spectra[i] = faulty(fault, spectra[i], rng, seed)
                with TemporaryDirectory() as place:
                    folder = Path(place)
                    lines = ["file,sample,label"]
                    for spectrum, sample, label in zip(spectra, made.groups, made.target, strict=True):
                        name = FORMATS["txt"](spectrum, folder, spectrum.metadata["id"])
                        lines.append(f"{name},{sample},{label}")
                    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
                    for table in (None, folder / "labels.csv"):
                        found = inspected(Folder(folder, table, needed=False, ignore=[folder / "labels.csv"]))
                        told = {of.file: {remark.what for remark in of.remarks} for of in found.spectra}
                        for i, fault in at.items():
                            planted[fault] += 1
                            named[fault] += bool(NAMED[fault] & told[f"{spectra[i].metadata['id']}.txt"])
                        if not at:
                            n_clean += len(told)
                            n_false += sum(map(bool, told.values()))
                        n_done += 1
    return planted, named, n_clean, n_false, n_done


def main() -> None:
    """Measure and print, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=20, help="of each size")
    parser.add_argument("--write", action="store_true", help="write docs/bench-inspection.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    planted, named, n_clean, n_false, n_done = measured(given.folders)
    lines = [
        "# Faulty spectra that the quality page names",
        "",
        f"`python bench/inspection.py --folders {given.folders} --write`: {n_done} inspections of simulated folders",
        f"(`make_raw_spectra`, {N_POINTS:,} points), of 40 samples with one spectrum and of 20 with three, with and",
        "without classes. In half of them eight spectra, drawn at random, have a fault each.",
        "",
        "| planted fault | planted | named |",
        "|---|--:|--:|",
        *(f"| {fault} | {planted[fault]} | {named[fault]} |" for fault in NAMED),
        "",
        f"False alarms: {n_false} of {n_clean:,} clean spectra ({100 * n_false / n_clean:.2f}%).",
        "The limits are the same for all kinds of spectra; real ones vary in more ways than simulated ones. Of the 96",
        "real spectra of four species of bacteria (MALDI-TOF, Bruker; given with the classes) none stands out.",
    ]
    text = "\n".join(lines) + "\n"
    PAGE.write_text(text) if given.write else print(text)


if __name__ == "__main__":
    main()
