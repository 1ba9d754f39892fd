package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// orgsCmd manages organizations.
type orgsCmd struct {
	Create orgsCreateCmd `cmd:"" help:"Create an organization."`
	List   orgsListCmd   `cmd:"" help:"List the organizations."`
	Rename orgsRenameCmd `cmd:"" help:"Rename an organization."`
	Keep   orgsKeepCmd   `cmd:"" help:"Show or change how long an organization keeps what it stores."`
	Quota  orgsQuotaCmd  `cmd:"" help:"Show or change what an organization may have at most."`
	Usage  orgsUsageCmd  `cmd:"" help:"Report what organizations have: agents, documents, messages, bytes, requests."`
	Delete orgsDeleteCmd `cmd:"" help:"Delete an organization with its keys and everything in it."`
}

type orgsCreateCmd struct {
	admin
	asked
	Name string `arg:"" help:"From 1 to 200 characters."`
}

func (c orgsCreateCmd) Run(ctx context.Context, s streams) error {
	if err := apikey.CheckOrgName(c.Name); err != nil {
		return settingError{err}
	}
	return c.with(ctx, s, false, func(a administration) error {
		o, err := a.CreateOrg(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s, o)
		}
		_, err = fmt.Fprintln(s.out, o.ID)
		return err
	})
}

type orgsListCmd struct {
	admin
	asked
}

func (c orgsListCmd) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, false, func(a administration) error {
		list, err := a.Orgs(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s, list)
		}
		rows := make([][]string, len(list))
		for i, o := range list {
			rows[i] = []string{o.ID, o.Name, shownTime(&o.CreatedAt), ""}
			if o.DeletedAt != nil {
				rows[i][3] = shownTime(o.DeletedAt) + " (its data is being deleted)"
			}
		}
		return printTable(s, "ID | NAME | CREATED | DELETED", rows)
	})
}

type orgsRenameCmd struct {
	admin
	asked
	Organization string `arg:"" help:"The organization's name or ID."`
	Name         string `arg:"" help:"Its new name."`
}

func (c orgsRenameCmd) Run(ctx context.Context, s streams) error {
	if err := apikey.CheckOrgName(c.Name); err != nil {
		return settingError{err}
	}
	return c.with(ctx, s, false, func(a administration) error {
		o, err := a.RenameOrg(ctx, c.Organization, c.Name)
		if err != nil || !c.JSON {
			return err
		}
		return printJSON(s, o)
	})
}

type orgsDeleteCmd struct {
	admin
	asked
	Organization string `arg:"" help:"The organization's name or ID."`
	Yes          bool   `help:"Delete it without asking."`
	Wait         bool   `help:"Delete its data now, showing the progress, instead of in the background of a server."`
}

func (c orgsDeleteCmd) Run(ctx context.Context, s streams) error {
	if c.Wait && c.Addr != "" {
		return settingError{errors.New("--wait deletes the data in the database itself, and --addr (LOCI_URL) names a " +
			"server, which does that in the background: leave one of them out")}
	}
	return c.with(ctx, s, false, func(a administration) error {
		if err := c.confirm(ctx, s, a); err != nil {
			return err
		}
		o, err := a.DeleteOrg(ctx, c.Organization)
		if c.Wait && errors.Is(err, db.ErrNotFound) {
			o, err = c.deletedBefore(ctx, a, err)
		}
		if err != nil {
			return err
		}
		if c.Wait {
			rows, err := clearOrganizations(ctx, s, a.(adminOfDatabase).Store)
			if err == nil && !c.JSON {
				_, err = fmt.Fprintf(s.out, "Deleted, with %d rows.\n", rows)
			}
			if err != nil || !c.JSON {
				return err
			}
		}
		if c.JSON {
			return printJSON(s, o)
		}
		_, err = fmt.Fprintf(s.out, "%s (%s) is deleted. Its keys no longer work; a server deletes its data in the "+
			"background.\n", o.Name, o.ID)
		return err
	})
}

// confirm asks for the organization's name on a terminal. It returns an error if the answer differs. Without a terminal
// it returns an error unless --yes was given.
func (c orgsDeleteCmd) confirm(ctx context.Context, s streams, a administration) error {
	o, err := a.Organization(ctx, c.Organization)
	if c.Yes || errors.Is(err, db.ErrNotFound) { // the deletion reports what is not found
		return nil
	}
	if err != nil {
		return err
	}
	if !isatty.IsTerminal(os.Stdin.Fd()) {
		return settingError{fmt.Errorf("the organization %q (%s) would be deleted with its keys and everything in it, which "+
			"cannot be restored: give --yes", o.Name, o.ID)}
	}
	fmt.Fprintf(s.err, "The organization %q (%s) is deleted with its keys and everything in it, which cannot be restored."+
		"\nIts name, to delete it: ", o.Name, o.ID)
	answer, err := bufio.NewReader(s.in).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != o.Name {
		return errors.New("that is not its name: nothing is deleted")
	}
	return nil
}

// deletedBefore returns the organization if it was deleted earlier and its data still exists, and otherwise the given
// error.
func (c orgsDeleteCmd) deletedBefore(ctx context.Context, a administration, notFound error) (apikey.Organization,
	error) {
	list, err := a.Orgs(ctx)
	if err != nil {
		return apikey.Organization{}, err
	}
	for _, o := range list {
		if o.DeletedAt != nil && (o.ID == c.Organization || o.Name == c.Organization) {
			return o, nil
		}
	}
	return apikey.Organization{}, notFound
}

// clearOrganizations deletes the data of all deleted organizations, including those that earlier commands deleted. It
// returns the number of rows.
func clearOrganizations(ctx context.Context, s streams, keys *apikey.Store) (rows int, err error) {
	reported := time.Now()
	for {
		remaining, err := keys.Clear(ctx, func(o apikey.Organization, table string, n int) {
			if rows += n; time.Since(reported) > time.Second {
				reported = time.Now()
				fmt.Fprintf(s.err, "%s: %d rows are deleted, the last of %s\n", o.Name, rows, table)
			}
		})
		if err != nil || remaining == 0 {
			return rows, err
		}
		fmt.Fprintln(s.err, "Waiting for jobs of the organization that still run.")
		if !db.Pause(ctx, time.Second) {
			return rows, ctx.Err()
		}
	}
}
