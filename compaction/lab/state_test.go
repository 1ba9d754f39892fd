package lab_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// A replay that is saved and resumed after every few messages gives the same result as an uninterrupted one.
func TestAReplayGoesOnWhereItWasSaved(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	session := lab.NewSession(work(40))
	for _, name := range []string{"deck", "pi", "letta", "fourlayer-literal", "openclaw", "claude-code"} {
		p, err := policy.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		under := lab.Settings{Name: name, Policy: p, Window: 12_000, Prices: policy.UsualPrices}
		want, err := lab.ReplayOf(t.Context(), session, under)
		if err != nil {
			t.Fatal(err)
		}
		r := lab.Begin(session, under)
		for n := 0; !r.Done(); n++ {
			if err := r.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n%7 != 0 {
				continue
			}
			saved, err := r.Save()
			if err != nil {
				t.Fatal(err)
			}
			if r, err = lab.Resume(session, under, saved); err != nil {
				t.Fatal(err)
			}
		}
		got := r.Result()
		got.Wall, want.Wall = 0, 0
		if diff := cmp.Diff(want, got); diff != "" || want.Compactions+want.Edits == 0 {
			t.Errorf("%s (-whole +resumed):\n%s", name, diff)
		}
	}
}

// Resume refuses the saved replay of another session.
func TestASavedReplayOfAnotherSessionIsRefused(t *testing.T) {
	t.Parallel()
	long, short := lab.NewSession(work(10)), lab.NewSession(work(1))
	r := lab.Begin(long, lab.Settings{})
	for range 30 {
		if err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := r.Save()
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{string(saved), `{"next":1,"visible":[99]}`, `{"next":1,"visible":[0]}`, `[]`} {
		if _, err := lab.Resume(short, lab.Settings{}, []byte(raw)); err == nil {
			t.Errorf("%.60s was resumed", raw)
		}
	}
}
