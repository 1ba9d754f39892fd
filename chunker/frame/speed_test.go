package frame_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
)

// BenchmarkNeutralize reports how many times longer the guard takes for 64 KiB than a plain reading, which counts
// characters and words.
func BenchmarkNeutralize(b *testing.B) {
	for name, line := range map[string]string{
		"prose":   "The quick brown fox jumps over the lazy dog, and then (as they say) sleeps for an hour.\n",
		"code":    "\tif v, ok := all[i]; ok && len(v) < 10 { f(v[0], map[string]int{\"a\": 1}) } // [seq x] # y\n",
		"German":  "Der schnelle braune Fuchs springt über den faulen Hund und schläft (müde) für eine Stunde.\n",
		"Russian": "Съешь ещё этих мягких французских булок, да выпей же чаю (и ложись спать) на часок.\n",
		"Arabic":  "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق ٤٠\n",
		"Chinese": "我能吞下玻璃而不伤身体。天地玄黄,宇宙洪荒(日月盈昃)辰宿列张,寒来暑往。\n",
		"Hindi":   "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले\n",
		"emoji":   "🙂🙃 👍🏽 ok 👩‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 done ✔️ 🅰️ 🇩🇪\n",
	} {
		text := strings.Repeat(line, 64<<10/len(line))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				frame.Neutralize(text)
			}
			guard, passes := b.Elapsed(), b.N
			b.StartTimer()
			for range passes {
				read += utf8.RuneCountInString(text) + len(strings.Fields(text))
			}
			b.StopTimer()
			b.ReportMetric(float64(guard)/float64(b.Elapsed()-guard), "times-a-reading")
		})
	}
}

var read int // stops the compiler from leaving out the reading
