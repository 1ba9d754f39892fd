package recall_test

import (
	"math/rand/v2"
	"testing"

	"github.com/loci-memory/loci/recall"
)

// Each message that some conversation has is left to exactly one, whatever was forked from what and deleted since.
func TestEachCopiedMessageIsLeftToOneConversation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's choices
		n := 2 + random.IntN(8)
		messages := make([][]int, n) // of each conversation: the numbers of what its positions say
		branches := make([]recall.Branch, n)
		said := 0
		for i := range n {
			branches[i] = recall.Branch{Key: int64(i + 1), Gone: random.IntN(3) == 0}
			if i > 0 && random.IntN(5) > 0 {
				from := random.IntN(i)
				to := 1 + random.IntN(len(messages[from]))
				key := int64(from + 1)
				branches[i].From, branches[i].To = &key, to
				messages[i] = append(messages[i], messages[from][:to]...)
			}
			for range 1 + random.IntN(4) {
				said++
				messages[i] = append(messages[i], said)
			}
		}
		first := int64(random.IntN(n + 1))
		keys, ends := recall.Repeats(branches, first)
		left := map[int64]int{}
		for i, key := range keys {
			left[key] = ends[i]
		}
		shown, had := map[int]int{}, map[int]bool{}
		for i, b := range branches {
			if b.Gone {
				continue
			}
			for at, m := range messages[i] {
				had[m] = true
				if at+1 > left[b.Key] {
					shown[m]++
				} else if b.Key == first {
					t.Fatalf("seed %d: the first conversation's message %d is left out", seed, m)
				}
			}
		}
		for m := range had {
			if shown[m] != 1 {
				t.Fatalf("seed %d: message %d is shown %d times", seed, m, shown[m])
			}
		}
	}
}
