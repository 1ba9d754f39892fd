package recall_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

// talks is 3,000 messages, the last 300 of which are of one day, the 15th of June, 2025.
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

// busyFrom is the first of the talks of one day.
const busyFrom = 2700

// How Postgres reads messages depends on what it knows of their tables, so that these tests run one after another in a
// database of their own, where autovacuum makes no statistics. The first ones find tables that were never analyzed.
// They share an agent who has had talks.
func TestHowPostgresReadsMessages(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	owner := dbtest.Owner(t, pool)
	for _, table := range []string{"messages", "conversations", "message_vectors", "word_segments", "word_postings"} {
		if _, err := owner.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`); err != nil {
			t.Fatal(err)
		}
	}
	of := fixtureOf(t, pool, dbtest.NewOrg(t, pool))
	of.append(talks()...)
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
			f := *of
			f.T, f.store = t, recall.New(pool, recall.Options{})
			test.run(&f)
		})
	}
}
