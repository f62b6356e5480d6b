import { IconTable } from '@tabler/icons-react'
import { RailLine } from '../../app/rail'
import { paths } from '../../app/paths'
import { useEntities } from './queries'

/** DataRail is the list of the entity types that the viewer may use. */
export function DataRail({ shut }: { shut: boolean }) {
  const entities = useEntities()
  return <>{(entities.data?.list ?? []).map((e) => <RailLine key={e.name} to={paths.entity(e.name)} label={e.name} icon={IconTable} icons={shut} />)}</>
}
