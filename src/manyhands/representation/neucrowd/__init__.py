"""NeuCrowd: representations learned from n-tuplets with robust anchors and a learned sampler."""
