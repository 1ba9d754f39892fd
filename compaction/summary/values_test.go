package summary_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/plan"
)

// A value in a result stays with its name, however the result is written, and whatever other lines stand around it.
func TestValuesOfResultsStay(t *testing.T) {
	t.Parallel()
	chatter := strings.Repeat("The list looks as it did.\nNothing else was found.\n", 6)
	for form, result := range map[string]string{
		"psql":             "   name    | size\n-----------+------\n anchor    | 613\n lifeboats | 24\n(2 rows)",
		"psql, expanded":   "-[ RECORD 1 ]---\nanchor    | 613\nlifeboats | 24",
		"MySQL":            "+--------+------+\n| name   | size |\n+--------+------+\n| anchor | 613  |\n+--------+------+",
		"one column":       " anchor \n--------\n    613\n(1 row)",
		"one boxed column": "+--------+\n| anchor |\n+--------+\n| 613    |\n+--------+",
		"Markdown":         "| name | size |\n|---|---|\n| lifeboats | 24 |\n| anchor | 613 |",
		"commas":           "name,size\nlifeboats,24\nanchor,613",
		"tabs":             "name\tsize\nlifeboats\t24\nanchor\t613",
		"columns":          "NAME        SIZE\nlifeboats   24\nanchor      613",
		"pairs":            "lifeboats 24\nanchor 613",
		"an environment":   "PORT_NAME=quay\nLIGHTS=off\nANCHOR=613",
		"YAML":             "lifeboats: 24\nanchor: 613",
		"JSON":             `{"lifeboats":24,"anchor":613}`,
		"a short list":     "anchor: 613\nhull: sound\ndeck: dry\nmast: fine",
		"another alphabet": "якорь: 613\nшлюпки: 24",
	} {
		for around, text := range map[string]string{"alone": result, "among others": chatter + result + "\n" + chatter} {
			d := &dialogue{}
			d.user("How large is it?")
			d.read("look", text)
			for range 12 {
				d.user("And the next one?")
				d.read("look", "The list looks as it did.")
				d.assistant("It is as before.")
			}
			got := extract(t, d, 1_200, plan.Defaults())
			if !strings.Contains(got, "613") {
				t.Errorf("%s, %s: the value is lost:\n%s", form, around, got)
			}
		}
	}
}

// What an error in another language says stands among the errors.
func TestErrorsInOtherLanguagesAreErrors(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"ОШИБКА 0x8007: лента закончилась", "Fehler 4711: Das Band ist zu Ende",
		"错误 217: 色带用完了"} {
		d := &dialogue{}
		d.user("Print it.")
		d.read("print", "ok\n"+line+"\nok")
		got := extract(t, d, 800, plan.Defaults())
		if _, errors, _ := strings.Cut(got, "Errors:\n"); !strings.Contains(errors, line) {
			t.Errorf("%q is no error:\n%s", line, got)
		}
	}
}
