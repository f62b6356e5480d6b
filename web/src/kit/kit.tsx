import { Arch } from '../ui/arch'
import { Button } from '../ui/button'
import { Page } from '../ui/page'

/** Kit shows every part of ui, in development only. */
export default function Kit() {
  return (
    <Page title="Kit">
      <div className="row wrap"><Arch state="open" label /><Arch state="part" label /><Arch state="shut" label /><Arch state="none" label /><Arch state="hold" label /></div>
      <div className="row wrap top6"><Button kind="main">Save</Button><Button>Plain</Button><Button kind="danger">Delete</Button><Button kind="quiet">Quiet</Button><Button disabled>Off</Button></div>
    </Page>
  )
}
