package lab

import "cmp"

// readAgain notes which calls of the message at index i read something again that is out of view.
func (r *Replaying) readAgain(i int) {
	if len(r.session.repeats[i]) == 0 {
		return
	}
	visible := make(map[int]bool, len(r.view.Messages))
	for _, m := range r.view.Messages {
		visible[m.Position] = true
	}
	for _, repeat := range r.session.repeats[i] {
		if again, is := r.outOfView(repeat, visible); is {
			again.Position = r.session.messages[i].Position
			if r.result.Rereads++; len(r.result.Reread) < maxMissing {
				r.result.Reread = append(r.result.Reread, again)
			}
		}
	}
}

// outOfView returns how the newest result of a repeated call is out of view. is is false if one of them is in view.
func (r *Replaying) outOfView(of repeat, visible map[int]bool) (again Reread, is bool) {
	for _, index := range of.results {
		position := r.session.messages[index].Position
		again = Reread{Tool: of.tool, What: of.what, Result: position}
		if !visible[position] {
			again.Step, again.How = r.hiddenBy[position], summarized
			continue
		}
		for _, e := range r.view.Edits {
			if e.Position == position {
				if again.Step, again.How = cmp.Or(e.Step, cutterOf(r.settings.Policy)), clearedAll; e.IsClip() && e.Chars > 0 {
					again.How = shortened
				}
			}
		}
		if again.How == "" {
			return again, false
		}
	}
	return again, len(of.results) > 0
}
