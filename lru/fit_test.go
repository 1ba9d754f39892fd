package lru_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci/lru"
	"pgregory.net/rapid"
)

func TestFitShortensTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	views := []lru.File{
		{ID: "b", Seq: 2, Chars: 100},
		{ID: "p", Seq: 1, Pinned: true, Chars: 100},
		{ID: "a", Seq: 2, Chars: 100},
		{ID: "c", Seq: 3, Chars: 5},
	}
	for _, c := range []struct {
		name         string
		budget, stub int
		want         map[string]int
	}{
		{"nothing that fits", 305, 10, map[string]int{}},
		{"one by as much as it must, a tie by id", 304, 10, map[string]int{"a": 99}},
		{"one down to its stub", 215, 10, map[string]int{"a": 10}},
		{"then the next", 214, 10, map[string]int{"a": 10, "b": 99}},
		{"not what is shorter than a stub; the pinned one last", 124, 10, map[string]int{"a": 10, "b": 10, "p": 99}},
		{"stubs where stubs do not fit", 0, 10, map[string]int{"a": 10, "b": 10, "p": 10}},
		{"a negative budget is none", -1000, 10, map[string]int{"a": 10, "b": 10, "p": 10}},
		{"nothing at all is a stub too", 0, 0, map[string]int{"a": 0, "b": 0, "c": 0, "p": 0}},
		{"a negative stub is nothing", 0, -5, map[string]int{"a": 0, "b": 0, "c": 0, "p": 0}},
		{"nothing where stubs are longer than views", 0, 200, map[string]int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, lru.Fit(views, c.budget, c.stub)); diff != "" {
				t.Errorf("Fit(%+v, %d, %d) (-want +got):\n%s", views, c.budget, c.stub, diff)
			}
		})
	}
}

func TestFitKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var views []lru.File
		for i := range rapid.IntRange(0, 15).Draw(t, "views") {
			views = append(views, lru.File{ID: fmt.Sprint(i), Seq: rapid.Int64Range(-2, 5).Draw(t, "seq"),
				Pinned: rapid.IntRange(0, 3).Draw(t, "pin") == 0, Chars: rapid.IntRange(0, 60).Draw(t, "chars")})
		}
		checkFit(t, views, rapid.IntRange(-5, 600).Draw(t, "budget"), rapid.IntRange(-1, 30).Draw(t, "stub"))
	})
}

// checkFit checks every promise of Fit for views with unique ids.
func checkFit(t fataler, views []lru.File, budget, stub int) {
	t.Helper()
	before := slices.Clone(views)
	allowed := lru.Fit(views, budget, stub)
	if diff := cmp.Diff(before, views); diff != "" {
		t.Fatalf("Fit changed the views (-before +after):\n%s", diff)
	}
	rand.New(rand.NewPCG(uint64(len(views)), 1)).
		Shuffle(len(before), func(i, j int) { before[i], before[j] = before[j], before[i] })
	if diff := cmp.Diff(allowed, lru.Fit(before, budget, stub)); diff != "" {
		t.Fatalf("Fit(%+v, %d, %d) depends on the order (-one +other):\n%s", views, budget, stub, diff)
	}
	stub, budget = max(stub, 0), max(budget, 0)
	sum, known := 0, 0
	for _, v := range views {
		chars, shortened := allowed[v.ID]
		if !shortened {
			sum += v.Chars
			continue
		}
		known++
		sum += chars
		if chars < stub || chars >= v.Chars {
			t.Fatalf(
				"Fit(%+v, %d, %d) allows %s %d chars, want less than it has and no less than a stub",
				views,
				budget,
				stub,
				v.ID,
				chars,
			)
		}
		checkTurn(t, views, allowed, v, stub)
	}
	if known != len(allowed) {
		t.Fatalf("Fit(%+v, %d, %d) = %v, want ids of views only", views, budget, stub, allowed)
	}
	if len(allowed) > 0 && sum < budget {
		t.Fatalf("Fit(%+v, %d, %d) = %v shows %d, want no more cut than must be", views, budget, stub, allowed, sum)
	}
	if sum > budget {
		checkStubs(t, views, allowed, stub)
	}
}

// checkTurn checks that all views to be shortened before v are stubs.
func checkTurn(t fataler, views []lru.File, allowed map[string]int, v lru.File, stub int) {
	t.Helper()
	for _, other := range views {
		earlier := other.Pinned == v.Pinned && (other.Seq < v.Seq || other.Seq == v.Seq && other.ID < v.ID) ||
			!other.Pinned && v.Pinned
		if chars, ok := allowed[other.ID]; earlier && other.Chars > stub && (!ok || chars != stub) {
			t.Fatalf("%+v is shortened before %+v is a stub of %d: %v", v, other, stub, allowed)
		}
	}
}

// checkStubs checks that no view is longer than a stub.
func checkStubs(t fataler, views []lru.File, allowed map[string]int, stub int) {
	t.Helper()
	for _, v := range views {
		if chars, ok := allowed[v.ID]; v.Chars > stub && (!ok || chars != stub) {
			t.Fatalf("the budget is exceeded though %+v is not a stub of %d: %v", v, stub, allowed)
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add([]byte{10, 1, 20, 2, 30, 0x83}, 25, 5)
	f.Add([]byte{}, 0, 0)
	f.Add([]byte{255, 0, 255, 0}, -1, -1)
	f.Fuzz(func(t *testing.T, pairs []byte, budget, stub int) {
		var views []lru.File
		for i := 0; i+1 < min(len(pairs), 200); i += 2 {
			views = append(
				views,
				lru.File{
					ID:     fmt.Sprint(i),
					Chars:  int(pairs[i]) * 1000,
					Seq:    int64(pairs[i+1] & 0x7f),
					Pinned: pairs[i+1]&0x80 != 0,
				},
			)
		}
		checkFit(t, views, budget, stub)
	})
}
