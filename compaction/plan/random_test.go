package plan_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// Whatever was said and whatever the settings, a plan loses nothing, reaches its goal or says what is too big, and
// comes to an end.
func TestPlansConserveFitAndEnd(t *testing.T) {
	t.Parallel()
	lives := uint64(scale.Pure(120, 20_000))
	var o outcomes
	seeds := make(chan uint64)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := range seeds {
				if err := live(seed, messagesOf(seed), &o); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	for seed := uint64(0); seed < lives && !t.Failed(); seed++ {
		seeds <- seed
	}
	close(seeds)
	group.Wait()
	t.Logf("%d lives: %d plans, %d with clips, %d with the newest of the user before the cut, %d above the goal, %d "+
		"again; %d times nothing to do, %d times too big",
		lives, o.plans, o.clips, o.kept, o.relaxed, o.again, o.nothing, o.tooBig)
	for what, n := range map[string]int{"plans": o.plans, "clips": o.clips, "kept": o.kept, "relaxed": o.relaxed,
		"nothing": o.nothing, "too big": o.tooBig} {
		if uint64(n) < lives/200 {
			t.Errorf("only %d of %s: the lives do not try it", n, what)
		}
	}
}
