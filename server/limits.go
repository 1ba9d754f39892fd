package server

import (
	"time"

	"github.com/loci-memory/loci/agent/handover"
)

// maxMessageBytes limits the body of a request to an agent, whose messages may have images.
const maxMessageBytes = 32 << 20

// maxCaptureBytes limits a body of messages or passages: a whole conversation may come in one.
const maxCaptureBytes = 64 << 20

// modelTimeout is how long a request may take in which a model may write a summary.
const modelTimeout = 3 * time.Minute

// handoverTimeout limits a request for a hand-over, which waits for handover.Patience.
const handoverTimeout = handover.Patience + 10e9

// batchTimeout limits the reading and storing of a batch: one of long texts has millions of words.
const batchTimeout = 15 * time.Minute
