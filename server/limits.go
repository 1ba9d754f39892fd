package server

import (
	"time"

	"github.com/loci-memory/loci/agent/handover"
)

// maxMessageBytes bounds the body of a request to an agent. Its messages may contain images.
const maxMessageBytes = 32 << 20

// maxCaptureBytes bounds a body of messages or passages, which may hold a whole conversation.
const maxCaptureBytes = 64 << 20

// modelTimeout bounds a request that may wait for a model to write a summary.
const modelTimeout = 3 * time.Minute

// handoverTimeout bounds a request for a hand-over, which waits for handover.Patience.
const handoverTimeout = handover.Patience + 10e9

// batchTimeout bounds the reading and storing of a batch, which may hold millions of words.
const batchTimeout = 15 * time.Minute
