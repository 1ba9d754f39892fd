package recall_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

// talks returns 3,000 messages. The last 300 are all of June 15, 2025.
func talks() []recall.Draft {
	drafts := make([]recall.Draft, 3000)
	for i := range drafts {
		day := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, i%100)
		if i >= busyFrom {
			day = time.Date(2025, 6, 15, 0, 0, 0, 0, time.UTC).Add(time.Duration(i-busyFrom) * time.Minute)
		}
		role := []recall.Role{recall.User, recall.Assistant}[i%2]
		drafts[i] = say(role, fmt.Sprintf("common talk number%d about subject%d", i, 300+i%700))
		drafts[i].CreatedAt = &day
	}
	return drafts
}

// busyFrom is the index of the first talk on that day.
const busyFrom = 2700

// Postgres' plans depend on its statistics. These tests therefore run one after another in a database of their own,
// where autovacuum makes no statistics. The first ones find tables that were never analyzed. All tests share one agent
// with talks.
func TestHowPostgresReadsMessages(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	owner := dbtest.Owner(t, pool)
	for _, table := range []string{"messages", "conversations", "message_vectors", "word_segments", "word_postings"} {
		if _, err := owner.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`); err != nil {
			t.Fatal(err)
		}
	}
	base := fixtureOf(t, pool, dbtest.NewOrg(t, pool))
	base.append(talks()...)
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"fresh messages are read by their keys", freshMessagesAreReadByKeys},
		{"a large scope is read through the index of terms", largeScopeIsReadThroughTerms},
		{"a busy day is read by its time", busyDayIsReadByTime},
		{"messages are ranked through the index of words", messagesAreRankedThroughWords},
		{"the view is read from its first message", viewIsReadFromItsFirstMessage},
		{"a large scope is read through the index of its vectors", largeScopeIsReadThroughItsVectors},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := *base
			f.T, f.store = t, recall.New(pool, recall.Options{})
			test.run(&f)
		})
	}
}
