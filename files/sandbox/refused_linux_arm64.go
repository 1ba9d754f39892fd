package sandbox

// programCalls are further calls that a program may not make, on this architecture.
func programCalls() []uint32 { return nil }
