package handover_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/handover"
)

func TestSentencesAreSortedByWhatTheySay(t *testing.T) {
	t.Parallel()
	for text, section := range map[string]string{
		"I migrated the tables.":                            handover.SectionDone,
		"We have rebuilt the index, I ran it.":              handover.SectionDone,
		"I sent the report to Ada.":                         handover.SectionDone,
		"Ich habe den Port in der Datei geändert.":          handover.SectionDone,
		"Ich habe den Dienst neu gestartet.":                handover.SectionDone,
		"J'ai corrigé le port dans le fichier.":             handover.SectionDone,
		"He reservado el hotel para tres noches.":           handover.SectionDone,
		"I wanted the tables to be small.":                  "",
		"Ich habe dazu noch eine kleine Frage an dich":      "",
		"J'ai une question sur le fichier.":                 "",
		"The port is open on the new host.":                 "",
		"Open question: who owns the backfill?":             handover.SectionOpen,
		"Open issues are in the tracker.":                   handover.SectionOpen,
		"It is still unclear who pays for it.":              handover.SectionOpen,
		"Who owns the backfill of the tables?":              handover.SectionOpen,
		"Es ist noch unklar, wer das bezahlt.":              handover.SectionOpen,
		"No está claro quién lo paga.":                      handover.SectionOpen,
		"We decided to use the tables.":                     handover.SectionDecided,
		"Wir haben beschlossen, Postgres zu nehmen.":        handover.SectionDecided,
		"Nous avons décidé de garder Postgres.":             handover.SectionDecided,
		"Decidimos usar Postgres en el servidor.":           handover.SectionDecided,
		"I learned that the proxy has a limit.":             handover.SectionLearned,
		"Es stellte sich heraus, dass der Proxy voll war.":  handover.SectionLearned,
		"Il s'avère que le proxy était plein.":              handover.SectionLearned,
		"Resulta que el proxy estaba lleno.":                handover.SectionLearned,
		"Next: backfill the tables.":                        handover.SectionNext,
		"Als nächstes ist der Proxy neu zu starten.":        handover.SectionNext,
		"Prochaine étape : redémarrer le proxy.":            handover.SectionNext,
		"El siguiente paso es reiniciar el proxy.":          handover.SectionNext,
		"Blocked by the missing certificate.":               handover.SectionBlocked,
		"Wir warten auf das Zertifikat der Bank.":           handover.SectionBlocked,
		"On est bloqué par le certificat.":                  handover.SectionBlocked,
		"Está bloqueado por el certificado.":                handover.SectionBlocked,
		"Die Lieferung ist durch die Bank blockiert.":       handover.SectionBlocked,
		"Estoy esperando el acceso al servidor.":            handover.SectionBlocked,
		"J'attends l'accès au serveur.":                     handover.SectionBlocked,
		"I have not fixed the parser.":                      "",
		"Ich habe den Parser nicht behoben.":                "",
		"Ich habe ihn noch nicht behoben.":                  "",
		"Je n'ai pas corrigé le fichier.":                   "",
		"No he corregido el parser.":                        "",
		"Todavía no lo he corregido.":                       "",
		"We haven't decided whether to use Redis.":          handover.SectionOpen,
		"We decided not to use Redis.":                      handover.SectionDecided,
		"We have not decided whether to use Redis.":         handover.SectionOpen,
		"Wir haben noch nicht entschieden, was wir nehmen.": handover.SectionOpen,
		"Nous n'avons pas encore décidé d'y aller.":         handover.SectionOpen,
		"Aún no hemos decidido si usamos Redis.":            handover.SectionOpen,
	} {
		want := map[string][]string{}
		if section != "" {
			want[section] = []string{text}
		}
		if diff := cmp.Diff(want, handover.SectionsOf("assistant: "+text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// What sessions leave that are not about code, and not in English.
func TestWhatASessionLeaves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		said []string
		want map[string][]string
	}{
		"a move takes the place of a home": {
			[]string{"user: Plan my week, please.", "user: I live in Lund. My name is Ada, and I'm allergic to nuts.",
				"assistant: Noted.", "user: By the way, I moved to Oslo last month.", "assistant: Congratulations!"},
			map[string][]string{"task": {"Plan my week, please."}, "entity": {
				"My name is Ada, and I'm allergic to nuts.", "By the way, I moved to Oslo last month."}}},
		"a project that pauses, and what blocks another": {
			[]string{"user: How are my projects doing?", "assistant: Atlas is now paused. Hermes is fine.",
				"assistant: Blocked by the certificate that the bank must sign."},
			map[string][]string{"task": {"How are my projects doing?"}, "entity": {"Atlas is now paused."},
				"blocked": {"Blocked by the certificate that the bank must sign."}}},
		"thanks ask for nothing": {
			[]string{"user: Please book a table for two.", "assistant: It is at eight.",
				"user: Thanks, that was all for today!"},
			map[string][]string{"task": {"Please book a table for two."}}},
		"an answered request is not next": {
			[]string{"user: Wann fährt der Zug nach Bremen?", "assistant: Um 14:10 Uhr von Gleis 3."},
			map[string][]string{"task": {"Wann fährt der Zug nach Bremen?"}}},
		"a request without an answer is next": {
			[]string{"user: Réserve une table pour deux.", "assistant: Pour quel jour voulez-vous la table ?",
				"user: Pour vendredi soir, à huit heures."},
			map[string][]string{"task": {"Réserve une table pour deux."},
				"next": {"Go on after the last request: Pour vendredi soir, à huit heures."}}},
		"facts in German": {
			[]string{"user: Ich heiße Jonas. Ich bin allergisch gegen Erdbeeren. Was koche ich heute?",
				"assistant: Eine Suppe."},
			map[string][]string{"task": {"Was koche ich heute?"}, "entity": {"Ich heiße Jonas.",
				"Ich bin allergisch gegen Erdbeeren."}}},
		"a date and an abbreviation end no sentence": {
			[]string{"user: Ich heiße Anna, mag z.B. Nüsse und habe am 4. Mai Geburtstag. My birthday is on the 4. of May. " +
				"Which doctor shall I see?", "assistant: Dr. Brown.", "user: I live in St. Gallen.", "assistant: Noted."},
			map[string][]string{"task": {"Which doctor shall I see?"}, "entity": {
				"Ich heiße Anna, mag z.B. Nüsse und habe am 4. Mai Geburtstag.", "My birthday is on the 4. of May.",
				"I live in St. Gallen."}}},
		"a long request": {
			[]string{"user: Rewrite the " + strings.Repeat("very ", 80) + "long service.", "assistant: Yes."},
			map[string][]string{"task": {"Rewrite the " + strings.Repeat("very ", 69) + "…"}}},
		"facts in French": {
			[]string{"user: Je m'appelle Zoé. J'habite à Lyon. Aide-moi à trouver un médecin.", "assistant: Volontiers."},
			map[string][]string{"task": {"Aide-moi à trouver un médecin."}, "entity": {"Je m'appelle Zoé.",
				"J'habite à Lyon."}}},
		"facts in Spanish": {
			[]string{"user: Vivo en Sevilla. Prefiero el tren al avión. Busca un viaje a Madrid.", "assistant: Claro.",
				"user: Me he mudado a Cádiz."},
			map[string][]string{"task": {"Busca un viaje a Madrid."}, "entity": {"Prefiero el tren al avión.",
				"Me he mudado a Cádiz."}}},
		"Chinese yields its task and its question": {
			[]string{"user: 请帮我计划去北京的旅行。谢谢", "assistant: 好的。您想什么时候出发？"},
			map[string][]string{"task": {"请帮我计划去北京的旅行。"}, "open": {"您想什么时候出发？"}}},
		"what is said of the matter at hand is no fact": {
			[]string{"user: Draft a letter to the bank.", "assistant: It is drafted below.",
				"user: I love this version. Call me when it is sent.", "assistant: It is sent."},
			map[string][]string{"task": {"Draft a letter to the bank."}}},
		"a question is no fact": {
			[]string{"user: Do you know where I live in winter?", "assistant: I do not know that."},
			map[string][]string{"task": {"Do you know where I live in winter?"}}},
	} {
		got := handover.SectionsOf(tt.said...)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nin %s", name, diff, strings.Join(slices.Sorted(maps.Keys(got)), " "))
		}
	}
}

// What tells the same attribute of the user is taken out of their file. What is told of others stays.
func TestWhatAFactSupersedes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, line string
		want       bool
	}{
		{"I moved to Oslo.", "- I live in Lund. (seq 3, 2026-01-02)", true},
		{"I moved to Oslo.", "- The user lives in Lund. (seq 3, 2026-01-02)", true},
		{"lives in Oslo", "- I live in Lund. (seq 3, 2026-01-02)", true},
		{"Ich wohne in Bremen.", "- J'habite à Lyon.", true},
		{"I moved to Oslo.", "- My wife lives in Lund.", false},
		{"I work at the harbour.", "- My wife works at the bank.", false},
		{"I was born in May.", "- My daughter was born in June.", false},
		{"I moved to Oslo.", "- My name is Ada.", false},
		{"I moved to Oslo.", "I live in Lund.", false}, // not a line of a list
		{"I'm allergic to nuts.", "- I'm allergic to eggs.", false},
	} {
		if got := handover.Supersedes(tt.text, tt.line); got != tt.want {
			t.Errorf("%q supersedes %q: got %t", tt.text, tt.line, got)
		}
	}
}
