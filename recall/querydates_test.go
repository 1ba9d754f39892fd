package recall_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/recall"
)

func TestTimesThatAQueryNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       [][3]int
	}{
		{"a day in ISO 8601", "what happened on 2023-05-08?", [][3]int{{2023, 5, 8}}},
		{"a day in words", "the party on 8 May, 2023", [][3]int{{2023, 5, 8}}},
		{"a day with its month first", "on June 3rd", [][3]int{{0, 6, 3}}},
		{"a month of a year", "who came in October 2022", [][3]int{{2022, 10, 0}}},
		{"a short month", "races of Sept. 2021", [][3]int{{2021, 9, 0}}},
		{"a month alone", "What did we buy in March?", [][3]int{{0, 3, 0}}},
		{"a month that is no other word", "the December trip", [][3]int{{0, 12, 0}}},
		{"not the verbs", "may I march to the mar?", nil},
		{"a year", "plans for 2024", [][3]int{{2024, 0, 0}}},
		{"several", "between May 2022 and July", [][3]int{{2022, 5, 0}, {0, 7, 0}}},
		{"no number that is not a date", "room 1204, 99 May", nil},
	} {
		if diff := cmp.Diff(tt.want, recall.Dates(tt.text)); diff != "" {
			t.Errorf("%s: %q (-want +got):\n%s", tt.name, tt.text, diff)
		}
	}
}
