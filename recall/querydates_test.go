package recall_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

func TestTimesThatAQueryNames(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 4, 17, 1, 30, 0, 0, time.FixedZone("", 9*3600)) // a Thursday
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"a day in ISO 8601", "what happened on 2023-05-08?", []string{"2023-05-08"}},
		{"a day by slashes, the year first", "2025/4/15", []string{"2025-04-15"}},
		{"a day by points", "on 15.4.2025", []string{"2025-04-15"}},
		{"a day by slashes, the month first", "on 4/15/2025", []string{"2025-04-15"}},
		{"a day by slashes, the day first", "on 15/04/2025", []string{"2025-04-15"}},
		{"either order where both are dates", "on 4/5/2025", []string{"2025-05-04", "2025-04-05"}},
		{"a day in words", "the party on 8 May, 2023", []string{"2023-05-08"}},
		{"a day with its ordinal", "on the 15th of April 2025", []string{"2025-04-15"}},
		{"a day with its weekday", "on Tuesday, April 15th, 2025", []string{"2025-04-15", "2025-04-15"}},
		{"a day with its month first", "on June 3rd", []string{"2024-06-03*"}},
		{"a day of this year", "on April 15", []string{"2025-04-15*"}},
		{"a month of a year", "who came in October 2022", []string{"2022-10-01 2022-10-31"}},
		{"a short month", "races of Sept. 2021", []string{"2021-09-01 2021-09-30"}},
		{"a month alone", "What did we buy in March?", []string{"2025-03-01 2025-03-31*"}},
		{"a month that is no other word", "the December trip", []string{"2024-12-01 2024-12-31*"}},
		{"not the verbs", "may I march to the mar?", nil},
		{"a year", "plans for 2024", []string{"2024-01-01 2024-12-31"}},
		{"a quarter", "the third quarter of 2024", []string{"2024-07-01 2024-09-30"}},
		{"a quarter by its number", "sales in Q3 2024 and 2023-Q1", []string{"2024-07-01 2024-09-30",
			"2023-01-01 2023-03-31"}},
		{"a quarter with its ordinal", "in the 4th quarter 2024", []string{"2024-10-01 2024-12-31"}},
		{"several", "between May 2022 and July", []string{"2022-05-01 2022-05-31", "2024-07-01 2024-07-31*"}},
		{"no number that is not a date", "room 1204, 99 May, 30 February 2024, 13.13.2024", []string{"2024-02-01 2024-02-29",
			"2024-01-01 2024-12-31"}},
		{"today", "what did I say today", []string{"2025-04-17"}},
		{"yesterday", "what did I say yesterday", []string{"2025-04-16"}},
		{"the day before", "and the day before yesterday?", []string{"2025-04-15"}},
		{"days ago", "three days ago", []string{"2025-04-14"}},
		{"a week ago", "a week ago", []string{"2025-04-07 2025-04-13"}},
		{"a weekday", "last Tuesday", []string{"2025-04-15"}},
		{"today's weekday", "on Thursday", []string{"2025-04-10"}},
		{"last week", "what happened last week", []string{"2025-04-07 2025-04-13"}},
		{"this month", "this month", []string{"2025-04-01 2025-04-30"}},
		{"last month", "the past month", []string{"2025-03-01 2025-03-31"}},
		{"last year", "last year", []string{"2024-01-01 2024-12-31"}},
	} {
		got, err := recall.Periods(t.Context(), tt.text, now)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %q, %v (-want +got):\n%s", tt.name, tt.text, err, diff)
		}
	}
}

// A cancelled search stops looking for times in a long query.
func TestTimesOfACancelledQueryAreNotRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := recall.Periods(ctx, "today", time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want the error of the context", got, err)
	}
}

// The messages of a day that the query names are found, whatever they say. The day is a day in the agent's time zone.
func TestADateFindsItsDay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	drafts := make([]recall.Draft, 300)
	for i := range drafts {
		day := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, i%90)
		drafts[i] = at(say(recall.User, "Let us talk about the weather in 2025."), day.Format(time.RFC3339))
	}
	f.append(append(drafts,
		at(say(recall.User, "The tortoise is ill."), "2025-04-14T15:00:00Z"), // midnight in Tokyo
		at(say(recall.Assistant, "Call the vet, she knows reptiles."), "2025-04-14T15:01:00Z"),
		at(say(recall.User, "I will."), "2025-04-15T14:59:00Z"),
		at(say(recall.User, "The vet was here."), "2025-04-15T15:00:00Z"), // the day after
	)...)
	tokyo := time.FixedZone("", 9*3600)
	want := []string{"The tortoise is ill.", "Call the vet, she knows reptiles.", "I will."}
	for _, text := range []string{"What did we talk about on 15 April 2025?", "what did we decide on April 15th",
		"2025-04-15", "What happened on 15.4.2025?", "4/15/2025", "what did I tell you last Tuesday?",
		"did we talk two days ago about anything?", "Apr 15", "on Apr 15?", "apr. 15th", "15 Apr", "two days ago"} {
		got := f.found(recall.Query{Text: text, Limit: 3, Zone: tokyo, Now: time.Date(2025, 4, 17, 3, 0, 0, 0, tokyo)})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	got := f.found(recall.Query{Text: "What did you say on 15 April 2025?", Roles: []recall.Role{recall.Assistant},
		Zone: tokyo})
	if diff := cmp.Diff(want[1:2], got); diff != "" {
		t.Errorf("of the assistant (-want +got):\n%s", diff)
	}
	for _, text := range []string{"Apr 15", "What did we talk about on April 15?", "yesterday or Apr. 15"} {
		got := f.found(recall.Query{Text: text, Limit: 3, Zone: tokyo, Now: time.Date(2026, 11, 22, 3, 0, 0, 0, tokyo)})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q of another year (-want +got):\n%s", text, diff)
		}
	}
	got = f.found(recall.Query{Text: "who is ill on 15 April 2025", Limit: 1, Zone: tokyo})
	if diff := cmp.Diff(want[:1], got); diff != "" {
		t.Errorf("the words rank the day's messages (-want +got):\n%s", diff)
	}
}

// On a busy day all messages are ranked, whatever they say, and Postgres reads them by their time.
func busyDayIsReadByTime(f *fixture) {
	f.Helper()
	plans := dbtest.NewPlans(f, f.pool)
	f.store = recall.New(plans, recall.Options{})
	var got []string
	for {
		page := f.found(recall.Query{Text: "What happened on 15 June 2025?", Offset: len(got), Limit: 100})
		if len(page) == 0 || len(got) > 300 {
			break
		}
		got = append(got, page...)
	}
	var want []string
	for _, d := range talks()[busyFrom:] {
		want = append(want, d.Content[0].Text)
	}
	if diff := cmp.Diff(want, got[:min(len(got), 300)]); diff != "" { // then messages next to words of the question
		f.Errorf("(-want +got):\n%s", diff)
	}
	if plan := plans.Take("ORDER BY r.created_at, r.key"); !strings.Contains(plan, "messages_time") {
		f.Errorf("the day is read by another plan:\n%s", plan)
	}
	f.found(recall.Query{})
	if plan := plans.Take("ORDER BY r.created_at DESC"); !strings.Contains(plan, "messages_time") {
		f.Errorf("the newest messages are read by another plan:\n%s", plan)
	}
}
