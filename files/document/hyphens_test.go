package document_test

import (
	"strings"
	"testing"
)

// pageOf returns a PDF with lines of text.
func pageOf(lines ...string) []byte {
	var content strings.Builder
	for i, line := range lines {
		content.WriteString(shown(50, 750-14*i, line))
	}
	return pdfOf("", pdfPage{content.String(), nil, ""})
}

func TestWordsBrokenAtALinesEnd(t *testing.T) {
	t.Parallel()
	english := "The keeper of the light writes down every night what he has seen and who came by on the water"
	german := "Der Aufseher schreibt in jeder Nacht auf, was er sah und wer auf dem Wasser an ihm vorbei kam, " +
		"und das seit Jahren"
	one := func(claim, want string, lines ...string) pdfCase {
		return pdfCase{claim, pageOf(lines...), want, ""}
	}
	behind := func(first, claim, want string, lines ...string) pdfCase {
		return pdfCase{claim, pageOf(append([]string{first}, lines...)...), first + "\n" + want, ""}
	}
	testPDF(t, []pdfCase{
		behind(english, "a word of the language is joined, a name is not",
			"He uses the RX-4500\nboard; the installation\ntakes an hour.\n", "He uses the RX-",
			"4500 board; the instal-", "lation takes an hour."),
		one("a word that stands elsewhere is joined", "The zorbification ended. Then zorbification\nbegan.\n",
			"The zorbification ended. Then zorbifi-", "cation began."),
		one("a word that stands nowhere else keeps its hyphen", "Then the zorbifi-cation\nbegan.\n",
			"Then the zorbifi-", "cation began."),
		behind(english, "a word that stands elsewhere with its hyphen keeps it",
			"This is a co-operation of all. The co-operation\nended.\n", "This is a co-operation of all. The co-",
			"operation ended."),
		behind(english, "a compound keeps its hyphen",
			"This is a long-term\nplan.\n", "This is a long-", "term plan."),
		behind(english, "nothing is joined after a capital, or before one",
			"The INSTAL-lation\nof Saint-Denis\nends.\n", "The INSTAL-", "lation of Saint-", "Denis ends."),
		behind(english, "nor before or after a digit",
			"from 10-20\nand 3-fold\nand x-2\nends.\n", "from 10-", "20 and 3-",
			"fold and x-", "2 ends."),
		behind(english, "nor within an address",
			"https://example.org/instal-lation\nand a@instal-lation.org\nand instal-lation_id\nend.\n",
			"https://example.org/instal-", "lation and a@instal-", "lation.org and instal-", "lation_id end."),
		behind(german, "another language has other words",
			"Die Verantwortung\nder Wissenschaft\n", "Die Verant-",
			"wortung der Wissen-", "schaft"),
		behind(german, "common words of German, and a hyphen that stands for the end of a later word",
			"Die Bundesregierung,\ndas Ministerium,\nein Krankenhaus\nund Fach- und\nSachbücher, Ein- oder\nAusgang.\n",
			"Die Bundes-", "regierung, das Minis-", "terium, ein Kran-", "kenhaus und Fach-", "und Sachb\xfccher, Ein-",
			"oder Ausgang."),
		behind(english, "nor is one of English", "It is short- or\nlong-term.\n", "It is short-", "or long-term."),
		behind(english, "a word that ends as such a word begins", "It is a photo\nof all.\n", "It is a pho-", "to of all."),
		behind(english, "a soft hyphen within a line is shown", "well-known.\n", "well\xadknown."),
		behind(english, "words of another language are not joined",
			"Die Verant-wortung\nends.\n", "Die Verant-",
			"wortung ends."),
		behind(english, "a word that is broken twice",
			"The administration\nends.\n", "The admin-", "istra-", "tion ends."),
		behind(english, "a dash at a line's end stays",
			"He left -\nand came.\n", "He left -", "and came."),
		behind(english, "a hyphen at the end of all",
			"He left in-\n", "He left in-"),
	})
}
