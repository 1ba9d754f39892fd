package main

import "log/slog"

// secret is a setting that is never printed.
type secret string

func (secret) String() string { return "[secret]" }

func (secret) LogValue() slog.Value { return slog.StringValue("[secret]") }
