package recall_test

import (
	"math/rand/v2"
	"testing"

	"github.com/loci-memory/loci/recall"
)

// Each message that a live conversation has is left to exactly one of them, whatever was forked and deleted before.
func TestEachCopiedMessageIsLeftToOneConversation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's choices
		n := 2 + random.IntN(8)
		messages := make([][]int, n) // by conversation: the number of the message at each position
		branches := make([]recall.Branch, n)
		count := 0
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
				count++
				messages[i] = append(messages[i], count)
			}
		}
		first := int64(random.IntN(n + 1))
		keys, ends := recall.Repeats(branches, first)
		leftOut := map[int64]int{}
		for i, key := range keys {
			leftOut[key] = ends[i]
		}
		shown, stored := map[int]int{}, map[int]bool{}
		for i, b := range branches {
			if b.Gone {
				continue
			}
			for at, m := range messages[i] {
				stored[m] = true
				if at+1 > leftOut[b.Key] {
					shown[m]++
				} else if b.Key == first {
					t.Fatalf("seed %d: the first conversation's message %d is left out", seed, m)
				}
			}
		}
		for m := range stored {
			if shown[m] != 1 {
				t.Fatalf("seed %d: message %d is shown %d times", seed, m, shown[m])
			}
		}
	}
}
