package document

import (
	"cmp"
	"strings"
)

// forms reads the fields of forms. They are shown later, where the document draws them.
func (o *odf) forms(x *xmlReader) error {
	return x.each(func(e element) error {
		if !strings.HasPrefix(e.name, "form:") || e.name == "form:form" {
			return o.forms(x)
		}
		id, value := cmp.Or(e.attr("form:id"), e.attr("id")), ""
		text, chosen, err := o.fieldParts(x)
		if err != nil {
			return err
		}
		entered := cmp.Or(e.attr("form:current-value"), e.attr("form:value"))
		switch e.name {
		case "form:text", "form:formatted-text", "form:number", "form:date", "form:time", "form:combobox", "form:file",
			"form:value-range":
			value = entered
		case "form:textarea":
			value = cmp.Or(entered, text)
		case "form:listbox":
			value = chosen
		case "form:checkbox":
			value = odfBox(cmp.Or(e.attr("form:current-state"), e.attr("form:state")) == "checked", e)
		case "form:radio":
			value = odfBox(cmp.Or(e.attr("form:current-selected"), e.attr("form:selected")) == "true", e)
		case "form:fixed-text", "form:frame":
			value = e.attr("form:label")
		case "form:password":
			if entered != "" {
				o.budget.omitted.add("password")
			}
		}
		if id != "" && value != "" && o.budget.handle(len(id)+len(value)) {
			if o.fields == nil {
				o.fields = map[string]string{}
			}
			o.fields[id] = value
		}
		return nil
	})
}

// odfBox returns a box with its label.
func odfBox(checked bool, e element) string {
	box := "☐"
	if checked {
		box = "☒"
	}
	return strings.TrimSpace(box + " " + e.attr("form:label"))
}

// fieldParts reads the content of a field: its text, and the options that are chosen.
func (o *odf) fieldParts(x *xmlReader) (text, chosen string, err error) {
	md := newFlat(o.budget)
	var first, now []string // chosen when the form is opened, and now
	err = x.each(func(e element) error {
		switch e.name {
		case "text:p":
			return o.block(x, e, md)
		case "form:option", "form:item":
			if e.attr("form:current-selected") == "true" {
				now = append(now, e.attr("form:label"))
			}
			if e.attr("form:selected") == "true" {
				first = append(first, e.attr("form:label"))
			}
		}
		return nil
	})
	if len(now) == 0 {
		now = first
	}
	return md.text(), strings.Join(now, ", "), err
}

// control returns the value of the field that a document draws.
func (o *odf) control(e element) string { return o.fields[e.attr("draw:control")] }
