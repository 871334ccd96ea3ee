"""One trial: a subject on a workload and a store, against an adversary."""
