package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/loci-memory/loci/tenant/erase"
)

// erasuresCmd lists erasures, and decides on those that agents ask for.
type erasuresCmd struct {
	List    erasuresListCmd    `cmd:"" help:"List erasures, the newest first."`
	Approve erasuresApproveCmd `cmd:"" help:"Approve an erasure that an agent asks for. It cannot be undone."`
	Deny    erasuresDenyCmd    `cmd:"" help:"Deny an erasure that an agent asks for."`
}

type erasuresListCmd struct {
	remote
	asked
}

func (c erasuresListCmd) Run(ctx context.Context, s streams) error {
	all, err := listAll[erase.Erasure](ctx, c.remote, "/v1/erasures", url.Values{"order": {"desc"}})
	if err != nil {
		return err
	}
	return printList(s, c.asked, all, "ID | STATUS | ASKED | TEXTS | REASON", func(e erase.Erasure) []string {
		return []string{e.ID, e.Status, shownTime(&e.CreatedAt), cmp.Or(strings.Join(e.Texts, ", "), textOf(e.MessageID)),
			textOf(e.Reason)}
	})
}

// erasureDecision holds the argument of a decision on an erasure.
type erasureDecision struct {
	remote
	asked
	Erasure string `arg:"" help:"ID of the erasure."`
}

// decide sends a decision, approve or deny, and prints what became of the erasure.
func (c erasureDecision) decide(ctx context.Context, s streams, verb string) error {
	var e listed[erase.Erasure]
	err := c.send(ctx, http.MethodPost, "/v1/erasures/"+url.PathEscape(c.Erasure)+"/"+verb, nil, &e.raw)
	if err = cmp.Or(err, decode(e.raw, &e.shown)); err != nil {
		return err
	}
	if e, err = c.ended(ctx, e); err != nil {
		return err
	}
	return printErasure(s, c.asked, e)
}

type erasuresApproveCmd struct {
	erasureDecision
	Yes bool `help:"Erase without asking."`
}

// Run waits until the erasure has ended.
func (c erasuresApproveCmd) Run(ctx context.Context, s streams) error {
	if !c.Yes {
		var e erase.Erasure
		if err := c.get(ctx, "/v1/erasures/"+url.PathEscape(c.Erasure), &e); err != nil {
			return err
		}
		subject := fmt.Sprintf("%q from all that the organization stores", e.Texts)
		if e.MessageID != nil {
			subject = "the text of message " + *e.MessageID + " from all that the organization stores"
		}
		if err := confirm(s, subject); err != nil {
			return err
		}
	}
	return c.decide(ctx, s, "approve")
}

type erasuresDenyCmd struct{ erasureDecision }

func (c erasuresDenyCmd) Run(ctx context.Context, s streams) error { return c.decide(ctx, s, "deny") }
