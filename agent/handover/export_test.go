package handover

import "github.com/loci-memory/loci/recall"

// SectionsOf returns the sections that the rules find in a session in which the model said only this text, with the
// sentences of each.
func SectionsOf(text string) map[string][]string {
	all := map[string][]string{}
	out := extract(material{Lines: []line{{Seq: 1, Role: recall.Assistant, Text: text}}})
	for _, s := range out.sections() {
		for _, i := range s.items {
			all[s.name] = append(all[s.name], i.Text)
		}
	}
	return all
}
