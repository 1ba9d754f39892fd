package prose_test

import (
	"testing"

	"github.com/loci-memory/loci/compaction/prose"
)

// An announcement of how something will be done counts like any statement; one of what comes next counts less.
func TestAnnouncementsOfPlansCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"I'll impute the missing weights with the group median and flag them in weight_imputed.":       true,
		"I will keep the old endpoint alive behind a flag until the mobile team has moved.":            true,
		"Ich werde die doppelten Kunden nach der Umsatzsteuernummer zusammenlegen und nicht per Name.": true,
		"Voy a guardar las facturas por trimestre en una carpeta aparte para la gestoría.":             true,
		"Nice, thanks. I'll impute the missing weights with the group median and flag them.":           true,
		"Nice, thanks. I'll drop the rows without a station and count them in dropped_rows.":           true,
		"I'll check the logs of the scheduler and report what I find.":                                 false,
		"I'll read src/reader/parse.go and then go through the callers one by one.":                    false,
		"Let me open the next file and see what it says about the amounts.":                            false,
		"Ich werde mir die nächste Datei ansehen und dann die Aufrufer prüfen.":                        false,
		"I'll do that.": false,
	} {
		if score := prose.SentenceOf(text).CueScore(); score >= 1.2 != want {
			t.Errorf("%q scores %.2f, want it to count: %t", text, score, want)
		}
	}
}
