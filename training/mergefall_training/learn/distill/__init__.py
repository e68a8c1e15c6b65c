"""Distillation: a network learns how a teacher values the actions on the boards that the network itself reaches."""
