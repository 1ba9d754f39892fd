package lab_test

import (
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
)

// Answers agree in the facts that they name, or without facts in their words. Yes and no do not agree.
func TestAnswersAgreeInWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer, other string
		least, most   float64
	}{
		"equal":           {"It is set in conf.d/wal.conf.", " it is  set in conf.d/wal.conf", 1, 1},
		"other words":     {"max_wal_size is 4096 MB.", "It has 4096 MB in max_wal_size, as the file says.", 1, 1},
		"one fact of two": {"max_wal_size is 4096 MB.", "max_wal_size is not said.", 0.4, 0.6},
		"another number":  {"It is 7003.", "It is 7004.", 0, 0},
		"no facts, same words": {"The carrier changed the address format.",
			"The address format was changed by it, the carrier.",
			0.9, 1},
		"no facts, others": {"The carrier changed the address format.", "Nobody said anything about that.", 0, 0.2},
		"yes and no":       {"Yes, it is in wal.conf.", "No, it is not in wal.conf.", 0, 0},
		"nothing said":     {"It is 7003.", "", 0, 0},
	} {
		if got := lab.Agreement(c.answer, c.other); got < c.least || got > c.most {
			t.Errorf("%s: got %v, want %v to %v", name, got, c.least, c.most)
		}
	}
}
