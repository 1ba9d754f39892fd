package local

// SharedBuffersOf returns the bytes of a private Postgres' buffers on the machine whose files are below root.
func SharedBuffersOf(root string) int64 { return sharedBuffers(memory(root)) }
