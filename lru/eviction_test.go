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

func TestEvictClosesTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	open := []lru.File{{ID: "c", Seq: 3}, {ID: "a", Seq: 1}, {ID: "d", Seq: 1}, {ID: "b", Seq: 2}}
	pinned := []lru.File{{ID: "a", Seq: 1, Pinned: true}, {ID: "b", Seq: 2}, {ID: "c", Seq: 3, Pinned: true}}
	for _, c := range []struct {
		name  string
		open  []lru.File
		max   int
		fresh map[string]bool
		want  []string
	}{
		{"nothing of nothing", nil, 0, nil, nil},
		{"nothing below the limit", open, 5, nil, nil},
		{"nothing at the limit", open, 4, nil, nil},
		{"the oldest, a tie by id", open, 3, nil, []string{"a"}},
		{"then the next", open, 1, nil, []string{"a", "d", "b"}},
		{"all at a limit of none", open, 0, nil, []string{"a", "d", "b", "c"}},
		{"a negative limit is none", open, -7, nil, []string{"a", "d", "b", "c"}},
		{"not the fresh one, though the oldest", open, 3, map[string]bool{"a": true}, []string{"d"}},
		{"a fresh one said to be not fresh", open, 3, map[string]bool{"a": false}, []string{"a"}},
		{"no fresh ones, though above the limit", open, 1, map[string]bool{"a": true, "d": true, "b": true}, []string{"c"}},
		{"no pinned ones, though above the limit", pinned, 1, nil, []string{"b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, lru.Evict(c.open, c.max, c.fresh)); diff != "" {
				t.Errorf("Evict(%+v, %d, %v) (-want +got):\n%s", c.open, c.max, c.fresh, diff)
			}
		})
	}
}

// entries draws open files, with ties, pinned files and fresh files among them.
func entries(t *rapid.T) (open []lru.File, fresh map[string]bool) {
	fresh = make(map[string]bool)
	for i := range rapid.IntRange(0, 20).Draw(t, "files") {
		id := fmt.Sprintf("file-%d", i)
		open = append(
			open,
			lru.File{ID: id, Seq: rapid.Int64Range(-3, 6).Draw(t, "seq"), Pinned: rapid.IntRange(0, 4).Draw(t, "pin") == 0},
		)
		if rapid.IntRange(0, 4).Draw(t, "fresh") == 0 {
			fresh[id] = true
		}
	}
	return open, fresh
}

func TestEvictKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		open, fresh := entries(t)
		checkEvict(t, open, rapid.IntRange(-1, 22).Draw(t, "max"), fresh)
	})
}

// fataler is the part of testing.T and rapid.T that the checks use.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkEvict checks every promise of Evict for files with unique ids.
func checkEvict(t fataler, open []lru.File, limit int, fresh map[string]bool) {
	t.Helper()
	before := slices.Clone(open)
	closed := lru.Evict(open, limit, fresh)
	if diff := cmp.Diff(before, open); diff != "" {
		t.Fatalf("Evict changed what is open (-before +after):\n%s", diff)
	}
	rand.New(rand.NewPCG(uint64(len(open)), 1)).
		Shuffle(len(before), func(i, j int) { before[i], before[j] = before[j], before[i] })
	if diff := cmp.Diff(closed, lru.Evict(before, limit, fresh)); diff != "" {
		t.Fatalf("Evict(%+v, %d) depends on the order (-one +other):\n%s", open, limit, diff)
	}
	kept, closable := 0, 0
	for _, e := range open {
		isClosed, mustStay := slices.Contains(closed, e.ID), e.Pinned || fresh[e.ID]
		if isClosed && mustStay {
			t.Fatalf("Evict(%+v, %d, %v) closes %s, want it kept", open, limit, fresh, e.ID)
		}
		if !isClosed {
			kept++
		}
		if !isClosed && !mustStay {
			closable++
			checkNewer(t, open, closed, e)
		}
	}
	if kept+len(closed) != len(open) {
		t.Fatalf("Evict(%+v, %d) = %v, want ids of open files, each once", open, limit, closed)
	}
	if kept > max(limit, 0) && closable > 0 {
		t.Fatalf("Evict(%+v, %d) keeps %d, of which %d could be closed", open, limit, kept, closable)
	}
	if len(closed) > 0 && kept < limit {
		t.Fatalf("Evict(%+v, %d) = %v keeps %d, want no more closed than must be", open, limit, closed, kept)
	}
}

// checkNewer checks that stays was used after every closed file, and that the closed files are in order of use.
func checkNewer(t fataler, open []lru.File, closed []string, stays lru.File) {
	t.Helper()
	last := lru.File{Seq: -1 << 63}
	for _, id := range closed {
		e := open[slices.IndexFunc(open, func(e lru.File) bool { return e.ID == id })]
		if after(last, e) {
			t.Fatalf("closed %v: %+v comes after %+v", closed, e, last)
		}
		if after(e, stays) {
			t.Fatalf("closed %+v and kept %+v, which was used earlier", e, stays)
		}
		last = e
	}
}

// after reports whether a was used after b.
func after(a, b lru.File) bool { return a.Seq > b.Seq || a.Seq == b.Seq && a.ID > b.ID }

func FuzzEvict(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0x81, 0x42}, 2)
	f.Add([]byte{}, 0)
	f.Add([]byte{0xff, 0xff, 0x3f, 0x3f}, -1)
	f.Fuzz(func(t *testing.T, files []byte, limit int) {
		var open []lru.File
		fresh := make(map[string]bool)
		for i, b := range files[:min(len(files), 200)] {
			id := fmt.Sprint(i)
			open = append(open, lru.File{ID: id, Seq: int64(b & 0x3f), Pinned: b&0x80 != 0})
			fresh[id] = b&0x40 != 0
		}
		checkEvict(t, open, limit, fresh)
	})
}
