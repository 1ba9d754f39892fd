package loop_test

import (
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model"
)

func TestPausesGrowAndAreNotTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		fault       model.Fault
		attempt     int
		least, most time.Duration
	}{
		{"a failure", model.Fault{}, 1, 250 * time.Millisecond, 500 * time.Millisecond},
		{"a second failure", model.Fault{}, 2, time.Second, 2 * time.Second},
		{"a limit", model.Fault{Limited: true}, 1, 2500 * time.Millisecond, 5 * time.Second},
		{"a second limit", model.Fault{Limited: true}, 2, 10 * time.Second, 20 * time.Second},
		{"what the provider asks for", model.Fault{Limited: true, After: 30 * time.Second}, 2, 30 * time.Second,
			33 * time.Second},
	} {
		seen := map[time.Duration]bool{}
		for range 100 {
			pause := loop.PauseAfter(&c.fault, c.attempt, 500*time.Millisecond)
			if seen[pause] = true; pause < c.least || pause > c.most {
				t.Errorf("%s: got a pause of %v, want %v to %v", c.name, pause, c.least, c.most)
			}
		}
		if len(seen) < 2 {
			t.Errorf("%s: all pauses are %v", c.name, seen)
		}
	}
}
