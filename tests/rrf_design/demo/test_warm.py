from __future__ import annotations

from rrf_design.demo.warm import use_everything


def test_the_kernels_of_verifier_and_decoder_are_met() -> None:
    use_everything()
    from rrf_design.certificates.checker import enumeration
    from solvers.kernels import support_pairs

    assert enumeration.walk.signatures
    assert support_pairs.scan_pairs.signatures
