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

// What a speaker will do once something has happened is open until then. What the next answer does is not.
func TestPromisesAreOpen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"I will send the incident report to Dagmar once the backfill has ended.":      true,
		"I'll wait for the nightly dump before touching the partition orders_2023.":   true,
		"Next I'll first tell the pilots of Rotterdam, as soon as the tide is known.": true,
		"Ich werde den Bericht an Dagmar senden, sobald der Lauf beendet ist.":        true,
		"I'll look at the log of the quay before I say more about it.":                false,
		"I will send the report to Dagmar.":                                           false,
		"Should I send the report to Dagmar once the backfill has ended?":             false,
	} {
		if got := prose.SentenceOf(text).Is(prose.Pending); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// A rule stays one if it asks for consent at its end.
func TestRulesMayAskForConsent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Just leave my TLS certificates out of this, okay?": true,
		"Please never touch the pier table, ok?":            true,
		"Keep the budget below 400, will you?":              true,
		"请不要修改 billing 目录，好吗？":                              true,
		"May I never touch the pier table?":                 false,
	} {
		s := prose.SentenceOf(text)
		if got := s.Is(prose.Standing) && !s.Asks(); got != want {
			t.Errorf("%q: %t, asks %t", text, got, s.Asks())
		}
	}
}

// A statement about where something is says more than its name. A request for it does not.
func TestPlacesAreNotBare(t *testing.T) {
	t.Parallel()
	for text, bare := range map[string]bool{
		"The dashboard is at https://grafana.tarn.example/d/xk7/relay-lag": false,
		"Die Vorlage liegt unter docs/specs/label-v7.md":                   false,
		"Next: docs/specs/label-v7.md":                                     true,
		"Now look at https://grafana.tarn.example/d/xk7/relay-lag":         true,
		"Where is docs/specs/label-v7.md?":                                 true,
	} {
		if got := prose.SentenceOf(text).IsBare(); got != bare {
			t.Errorf("%q: %t", text, got)
		}
	}
}
