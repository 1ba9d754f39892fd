package summary_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/plan"
)

// A correction stands on the line of what it corrects, so that neither is shown without the other. A quotation of the
// request that it corrects names it.
func TestACorrectionStandsBehindWhatItCorrects(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"The cabin number is 41, upper deck.", "no, it is 43 not 41"},
		{"The berth is 61, past the crane.", "no, it is 63 not 61 Thanks for your patience."},
		{"There were 6 crates in the hold.", "It was 5 crates, I counted again."},
		{"The ferry leaves at 09:15.", "It is 10:40, I read the wrong line."},
		{"The captain is called Meret Saluz.", "Sorry, my mistake, the captain is Merit Saluz."},
		{"Der Anleger ist Nummer 12.", "Nein, nicht 12, sondern Nummer 21."},
		{"Le quai est le 8.", "Non, pas le 8, le quai 18."},
		{"El camarote es el 33.", "Me equivoqué, el camarote es el 38."},
		{"Il molo è il 5.", "No, non il 5, il molo 15."},
		{"O cais é o 7.", "Me enganei, o cais é o 17."},
		{"De kade is nummer 4.", "Nee, niet 4, maar kade 14."},
		{"Nabrzeże ma numer 9.", "Nie, nie 9, nabrzeże 19."},
		{"Причал номер 21.", "Нет, не 21, а 23 причал."},
		{"İskele 6 numara.", "Hayır, 6 değil, iskele 16."},
		{"乗り場は3番です。", "間違えました、3番ではなく乗り場は8番です。"},
		{"码头是5号。", "不对，是3号码头，不是5号。"},
		{"선착장은 2번입니다.", "아니요, 2번이 아니라 선착장은 7번이에요."},
		{"ท่าเรือหมายเลข 4", "บอกผิด ท่าเรือหมายเลข 9 ไม่ใช่ 4"},
		{"رقم الرصيف 15.", "تصحيح: رقم الرصيف 17 وليس 15."},
		{"घाट नंबर 34 है।", "माफ़ कीजिए, घाट नंबर 36 है, 34 नहीं।"},
	} {
		d := &dialogue{}
		d.user("Never sail at night.")
		d.assistant("All right.")
		d.user(c[0])
		d.assistant("I note that.")
		d.user("We sleep 5 nights on board.")
		d.assistant("I see.")
		d.user(c[1])
		got := extract(t, d, 900, plan.Defaults())
		joined := strings.Contains(got, c[1])
		for line := range strings.Lines(got) {
			if strings.Contains(line, c[0]) {
				joined = joined && (strings.Contains(line, c[1]) || strings.Contains(line, "corrected at [22]"))
			}
		}
		if !joined {
			t.Errorf("%q and %q stand apart:\n%s", c[0], c[1], got)
		}
	}
}

// What only speaks of the same, or of other numbers, corrects nothing.
func TestWhatIsNoCorrection(t *testing.T) {
	t.Parallel()
	d := &dialogue{}
	d.user("The ferry leaves at quay 7.")
	d.assistant("I see.")
	d.user("We need 2 cabins, not 3 beds in one.")
	d.assistant("I see.")
	d.user("The ferry has a shop with maps.")
	if got := extract(t, d, 900, plan.Defaults()); strings.Contains(got, "corrected at") {
		t.Errorf("something is corrected:\n%s", got)
	}
}
